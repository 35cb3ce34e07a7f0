"""The source distribution holds everything that a wheel is built from, and nothing else."""

import pathlib
import subprocess
import sys
import tarfile

import pytest

pytest.importorskip("scikit_build_core")
ROOT = pathlib.Path(__file__).resolve().parents[2]
TOP = {"CMakeLists.txt", "LICENSE", "pyproject.toml", "PKG-INFO", "oracle"}
NOT_BUILT = ("oracle/cli/", "oracle/package/")


def test_the_source_distribution_is_complete(tmp_path):
    made = subprocess.run(
        [sys.executable, "-c", "import scikit_build_core.build as build, sys; "
         "print(build.build_sdist(sys.argv[1]))", str(tmp_path)],
        cwd=ROOT, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    with tarfile.open(tmp_path / made.stdout.split()[-1]) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
    assert {name.split("/")[0] for name in names} <= TOP
    here = {path.relative_to(ROOT).as_posix() for path in (ROOT / "oracle").rglob("*")
            if path.is_file() and "__pycache__" not in path.parts}
    here = {name for name in here if not name.startswith(NOT_BUILT)}
    assert {name for name in names if name.startswith("oracle/")} == here
