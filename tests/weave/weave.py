#!/usr/bin/env python3
"""Text equals code: blocks, numbers, links and equations of Markdown files against their source.

    weave.py [--bin FOLDER] [--fix] [--no-run] [PAGE...]

exits 1 and prints one line "PAGE:LINE: what" for each difference; --fix rewrites blocks and values
instead. Programs that directives name are found in --bin (default build/bin); --no-run leaves out
what needs them. docs/CONTRIBUTING.md explains the directives:

    <!-- code: PATH#REGION -->       the next fenced block is that region of that file
    <!-- output: COMMAND -->         the next fenced block is what the command prints
    <!-- sample: REASON -->          the next fenced block is not checked, and this is why
    <!-- value: COMMAND -->X<!-- /value -->   X is what the command prints, on one line
    <!-- figure: COMMAND -->         the file of the next image is what the command prints
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import textwrap

HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "style")]
import links  # noqa: E402
import equations  # noqa: E402
import numbers_in_text  # noqa: E402
import sources  # noqa: E402

DIRECTIVE = re.compile(r"\s*<!-- (code|output|sample): (.+?) -->\s*$")
VALUE = re.compile(r"<!-- value: (.+?) -->(.*?)<!-- /value -->")
FIGURE = re.compile(r"\s*<!-- figure: (.+?) -->\s*$")
IMAGE = re.compile(r"\s*!\[[^\]]+\]\(([^)\s]+)\)\s*$")
FENCE = re.compile(r"(\s*)(`{3,}|~{3,})(\S*)[^`]*$")
# Blocks without a directive: commands to type, plain diagrams, formulas.
FREE_BLOCKS = {"sh", "text", "math"}
TIME_LIMIT_SECONDS = 120


class Wrong(Exception):
    """What is wrong at one place of a page."""


class Originals:
    """Regions of files and outputs of commands, each fetched once."""

    def __init__(self, root, programs, run=True):
        self.root, self.programs, self.run = root, programs, run
        self.outputs = {}

    def region(self, where):
        """The lines from `[REGION]` to `[/REGION]` in PATH, without indentation and inner marks."""
        path, _, name = where.partition("#")
        if not (self.root / path).is_file():
            raise Wrong(f"no file {path}")
        lines = (self.root / path).read_text(encoding="utf-8").splitlines()
        mark = re.compile(r"\s*(?://|#) \[(/?[a-z0-9-]+)\]\s*$")
        if name:
            begin = [i for i, l in enumerate(lines) if (m := mark.match(l)) and m[1] == name]
            end = [i for i, l in enumerate(lines) if (m := mark.match(l)) and m[1] == "/" + name]
            if len(begin) != 1 or len(end) != 1 or begin[0] > end[0]:
                raise Wrong(f"{path} does not hold exactly one region [{name}] … [/{name}]")
            lines = lines[begin[0] + 1:end[0]]
        return textwrap.dedent("\n".join(l for l in lines if not mark.match(l))).strip("\n")

    def output(self, command):
        """What a shell command prints in the root folder with our programs on the path."""
        if command not in self.outputs:
            path = f"{self.programs}{os.pathsep}{os.environ['PATH']}"
            env = dict(os.environ, PATH=path, LC_ALL="C")
            done = subprocess.run(command, shell=True, cwd=self.root, env=env, text=True,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, timeout=TIME_LIMIT_SECONDS)
            text = done.stdout.strip("\n")
            if done.returncode not in (0, 1, 3, 4) or not text:  # a verdict is an exit status, too
                raise Wrong(f"`{command}` exited {done.returncode}: {text or 'no output'}")
            self.outputs[command] = text
        return self.outputs[command]


def fenced_blocks(lines):
    """Yields (first, last, language, indent) of each fenced block: the lines of its two fences."""
    opened = None
    for number, line in enumerate(lines):
        fence = FENCE.match(line)
        if opened is None and fence:
            opened = number, fence
        elif opened and line.strip() == opened[1][2]:
            yield opened[0], number, opened[1][3], opened[1][1]
            opened = None
    if opened:
        raise Wrong("a fenced block without an end")


def directive_above(lines, first):
    """The directive in the nearest line above a block that is not empty."""
    above = first - 1
    while above >= 0 and not lines[above].strip():
        above -= 1
    found = DIRECTIVE.match(lines[above]) if above >= 0 else None
    return (above, found[1], found[2]) if found else None


def weave_blocks(lines, originals, report):
    """Compares each block with its source; returns the lines with fresh blocks."""
    fresh, copied, used = [], 0, set()
    for first, last, language, indent in fenced_blocks(lines):
        directive = directive_above(lines, first)
        fresh += lines[copied:first + 1]
        copied = last
        body = lines[first + 1:last]
        if directive is None:
            if language not in FREE_BLOCKS:
                report(first, f"a block '{language}' without directive; free are "
                              f"{', '.join(sorted(FREE_BLOCKS))}")
        else:
            number, kind, argument = directive
            used.add(number)
            try:
                if kind == "code":
                    body = textwrap.indent(originals.region(argument), indent).splitlines()
                elif kind == "output" and originals.run:
                    body = textwrap.indent(originals.output(argument), indent).splitlines()
            except Wrong as wrong:
                report(number, str(wrong))
            if body != lines[first + 1:last]:
                report(first, f"the block differs from {kind}: {argument}", fixable=True)
        fresh += body
    for number, line in links.prose(lines):
        if DIRECTIVE.match(line) and number - 1 not in used:
            report(number - 1, "a directive without a block below it")
    return fresh + lines[copied:]


def weave_values(lines, originals, report):
    """Compares each inline value with what its command prints; returns the fresh lines."""
    fresh = list(lines)
    for number, line in links.prose(lines):
        def replace(match):
            try:
                value = originals.output(match[1]) if originals.run else match[2]
            except Wrong as wrong:
                report(number - 1, str(wrong))
                return match[0]
            if value != match[2]:
                report(number - 1, f"'{match[2]}' is '{value}' by value: {match[1]}", fixable=True)
            return f"<!-- value: {match[1]} -->{value}<!-- /value -->"
        fresh[number - 1] = VALUE.sub(replace, line)
    return fresh


def weave_figures(root, page, lines, originals, report, fix):
    """Compares the file of each drawn image with what its command prints; `fix` writes it."""
    prose = list(links.prose(lines))
    for place, (number, line) in enumerate(prose):
        directive = FIGURE.match(line)
        if not directive:
            continue
        below = next((text for _, text in prose[place + 1:] if text.strip()), "")
        image = IMAGE.match(below)
        if not image:
            report(number - 1, "a figure's directive without an image that has a description")
            continue
        if not originals.run:
            continue
        try:
            drawn = originals.output(directive[1]) + "\n"
        except Wrong as wrong:
            report(number - 1, str(wrong))
            continue
        target = (root / page).parent / image[1]
        if not target.is_file() or target.read_text(encoding="utf-8") != drawn:
            report(number - 1, f"{image[1]} differs from figure: {directive[1]}", fixable=True)
            if fix:
                target.write_text(drawn, encoding="utf-8")


def pages_of(root):
    """The Markdown files of the project."""
    return [path for path in sources.files(root) if path.endswith(".md")]


def weave(root, pages, originals, fix=False):
    """Checks (and with `fix` rewrites) the pages; returns the differences that are left."""
    problems = []
    for page in pages:
        text = (root / page).read_text(encoding="utf-8")
        lines = text.splitlines()
        found = []

        def report(line, what, fixable=False):
            if not (fix and fixable):
                found.append((page, line + 1, what))
        try:
            fresh = weave_values(weave_blocks(lines, originals, report), originals, report)
            weave_figures(root, page, lines, originals, report, fix)
        except Wrong as wrong:
            report(0, str(wrong))
            fresh = lines
        if fix and fresh != lines:
            (root / page).write_text("\n".join(fresh) + "\n", encoding="utf-8")
        problems += found
        problems += [(page, n, what) for n, what in links.check(root, page, lines)]
        problems += [(page, n, what) for n, what in numbers_in_text.check(root, page, fresh)]
    if "README.md" in pages:  # all pages, not a few
        problems += links.dead_ends(root, pages)
    return problems + list(equations.check(root))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path("."))
    parser.add_argument("--bin", type=pathlib.Path, default=None)
    parser.add_argument("--fix", action="store_true")
    parser.add_argument("--no-run", action="store_true")
    parser.add_argument("pages", nargs="*")
    options = parser.parse_args()
    root = options.root.resolve()
    programs = (options.bin or root / "build/bin").resolve()
    pages = options.pages or pages_of(root)
    problems = weave(root, pages, Originals(root, programs, not options.no_run), options.fix)
    for page, line, what in problems:
        print(f"{page}:{line}: {what}")
    print(f"weave: {len(pages)} pages, {len(problems)} differences")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
