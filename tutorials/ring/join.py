#!/usr/bin/env python3
"""Joins the parts in this folder into tutorials/ring.html, one file that opens from disk.

    join.py [--bin FOLDER]            writes ../ring.html; with --bin first what programs write:
                                      steps.svg (a schedule drawn), trace.jsonl (a recorded run)
    join.py --check [--bin FOLDER]    writes nothing; exit 1 and a line for each file that differs
"""

import argparse
import json
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
PAGE = HERE.parent / "ring.html"
INCLUDE = re.compile(r"^(?:/\*|//|<!--) include: ([\w.]+)(?: \*/| -->)?$", re.M)
ROWS, COMPONENTS = 16, 4


def joined():
    """The page with every part in its place; a part must not end the element that it stands in."""
    def part(match):
        text = (HERE / match[1]).read_text(encoding="utf-8").rstrip("\n")
        if re.search(r"</(?:script|style)", text):
            raise SystemExit(f"join: {match[1]} holds a closing tag")
        return text
    return INCLUDE.sub(part, (HERE / "page.html").read_text(encoding="utf-8"))


def write_case(path):
    """A small causal problem with upstream gradients, as a case file (docs/formats.md)."""
    header = {"__metadata__": {"ringproof": json.dumps({"version": 1, "causal": "top_left"})}}
    data = b""
    for name, stride in (("q", 3), ("k", 5), ("v", 2), ("dout", 4)):
        numbers = [(index * stride % 7) / 4 for index in range(ROWS * COMPONENTS)]
        raw = struct.pack(f"<{len(numbers)}f", *numbers)
        header[name] = {"dtype": "F32", "shape": [1, 1, ROWS, COMPONENTS],
                        "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def recorded(programs):
    """What programs write, as {name: text}."""
    reference = programs / "ringproof-reference"
    drawing = subprocess.run([reference, "schedule", "--ranks", "4", "--mask", "causal",
                              "--format", "svg"], capture_output=True, text=True, check=True)
    with tempfile.TemporaryDirectory() as folder:
        case, trace = pathlib.Path(folder) / "case", pathlib.Path(folder) / "trace"
        write_case(case)
        subprocess.run([reference, case, "-o", f"{folder}/answer", "--ranks", "4", "--backward",
                        "--trace", trace], stdout=subprocess.DEVNULL, check=True)
        return {"steps.svg": drawing.stdout, "trace.jsonl": trace.read_text(encoding="utf-8")}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", type=pathlib.Path)
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args()
    different = 0

    def put(path, text):
        nonlocal different
        if path.is_file() and path.read_text(encoding="utf-8") == text:
            return
        different += 1
        if given.check:
            print(f"join: {path.relative_to(HERE.parent)} is not what its parts make of it")
        else:
            path.write_text(text, encoding="utf-8")
            print(f"join: wrote {path.relative_to(HERE.parent)}")

    for name, text in (recorded(given.bin) if given.bin else {}).items():
        put(HERE / name, text)
    put(PAGE, joined())
    return 1 if given.check and different else 0


if __name__ == "__main__":
    sys.exit(main())
