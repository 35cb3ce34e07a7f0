#!/usr/bin/env python3
"""Runs the commands that this chapter prints, letter by letter.

    as_printed.py N    prints what block N of its commands prints, after blocks 1 to N - 1: this is
                       what the page quotes
    as_printed.py      runs all blocks and compares what they print with the page; exit status 1 if
                       it differs

They run in a folder of their own that has the entries of the root folder, so that nothing is left
behind; `./run` stands there for the program that it would build first, the `ringproof` on the path.
The quoted blocks are those below "<!-- output: ... as_printed.py N -->", the commands the block of
shell in front of each.
"""

import argparse
import contextlib
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
STEP = re.compile(r"```sh\n(?P<commands>(?:(?!```).)*)```\n\s*"
                  r"<!-- output: [^\n]*as_printed\.py (?P<number>\d+) -->\n"
                  r"```text\n(?P<output>.*?)```", re.DOTALL)


def steps():
    """(commands, output) of each block, in order."""
    found = list(STEP.finditer((HERE / "README.md").read_text(encoding="utf-8")))
    numbers = [int(step["number"]) for step in found]
    assert numbers == list(range(1, len(found) + 1)), numbers
    return [(step["commands"], step["output"]) for step in found]


@contextlib.contextmanager
def reader_folder():
    """A folder that looks like the root of the project after `./run build`."""
    program = shutil.which("ringproof")
    assert program, "no program ringproof on the path"
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for entry in ("oracle", "tutorials"):
            (folder / entry).symlink_to(ROOT / entry)
        (folder / "build").mkdir()
        (folder / "build/bin").symlink_to(pathlib.Path(program).resolve().parent)
        (folder / "run").write_text('#!/bin/sh\nexec build/bin/ringproof "$@"\n', encoding="utf-8")
        (folder / "run").chmod(0o755)
        yield folder


def shell(commands, folder):
    done = subprocess.run(commands, shell=True, cwd=folder, text=True, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return done.stdout.strip("\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("number", nargs="?", type=int)
    only = parser.parse_args().number
    different = 0
    with reader_folder() as folder:
        for number, (commands, expected) in enumerate(steps()[:only], 1):
            output = shell(commands, folder)
            if only == number:
                print(output)
            elif only is None and output != expected.strip("\n"):
                print(f"{commands}prints\n{output}\nand the page says\n{expected}")
                different += 1
    if only is None:
        print(f"as_printed: {len(steps())} blocks, {different} differ")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
