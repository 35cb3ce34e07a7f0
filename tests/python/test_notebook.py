"""tutorials/ring.ipynb runs with the package alone and prints what it holds.

RINGPROOF_WRITE=1 writes the outputs anew.
"""

import copy
import os
import pathlib

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
NOTEBOOK = pathlib.Path(__file__).resolve().parents[2] / "tutorials" / "ring.ipynb"


def texts(cell):
    """What a cell printed and returned, as text; pictures are looked at by test_check.py."""
    found = []
    for output in cell.get("outputs", []):
        if output["output_type"] == "stream":
            found.append(output["text"])
        elif output["output_type"] == "execute_result":
            found.append(output["data"]["text/plain"])
    return "".join(found)


def test_the_notebook_prints_what_it_holds():
    stored = nbformat.read(NOTEBOOK, as_version=4)
    fresh = copy.deepcopy(stored)
    nbclient.NotebookClient(fresh, timeout=120, kernel_name="python3").execute()
    pictures = [output for cell in fresh.cells for output in cell.get("outputs", [])
                if "text/html" in output.get("data", {})]
    assert any("<svg" in picture["data"]["text/html"] for picture in pictures)
    if os.environ.get("RINGPROOF_WRITE"):
        for cell, run in zip(stored.cells, fresh.cells):
            if cell.cell_type == "code":
                text = texts(run)
                cell.outputs = [nbformat.v4.new_output("stream", name="stdout", text=text)
                                ] if text else []
        nbformat.write(stored, NOTEBOOK)
    for cell, run in zip(stored.cells, fresh.cells):
        assert texts(run) == texts(cell), cell.source


def test_the_notebook_needs_nothing_but_the_package_and_numpy():
    imports = [line for cell in nbformat.read(NOTEBOOK, as_version=4).cells
               if cell.cell_type == "code" for line in cell.source.splitlines()
               if line.startswith(("import ", "from "))]
    assert set(imports) == {"import numpy", "import ringproof"}
