#!/usr/bin/env python3
"""The chapters of the tutorials keep their form: what each has, how long it is, where it leads; and
together they come to every claim of the document.

    chapters.py [--root ROOT]      exits 1 and prints one line "PAGE: what" for each difference
"""

import argparse
import json
import os
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import links  # noqa: E402

LONGEST = 15  # minutes
WORDS_A_MINUTE, BLOCK_LINES_A_MINUTE = 180, 40
OPENING = re.compile(r"\*(\d+) minutes\. Needs: .+")
# A neighbour that does not exist is named without a link.
LINKS_AT_END = re.compile(
    r"(?:\[← [^]]+\]\(([^)]+)\)|[^[]+) · \[all chapters\]\(([^)]+)\) · (?:\[.+ →\]\((.+)\)|[^[]+)")
NOT_YET = "(not yet)"


# Lines of the document that a page cites; "lines 71 to 83" cites both ends.
CITED = re.compile(r"\blines? (\d+)(?: (?:to|and) (\d+))?")


def document(root):
    """The lines of the document, which is not part of the repository; None where it is absent."""
    shared = pathlib.Path(os.environ.get("RINGPROOF_SHARED", root.parent / "shared"))
    path = shared / "document.txt"
    return path.read_text(encoding="utf-8").splitlines() if path.is_file() else None


def check_citations(lines, source):
    """Yields what is wrong with the lines of the document that a chapter cites."""
    for _, text in links.prose(lines):
        for number in (int(n) for match in CITED.findall(text) for n in match if n):
            if not 0 < number <= len(source) or not source[number - 1].strip():
                yield f"cites line {number} of the document, where nothing stands"


def minutes(lines):
    """How long a page takes to read: its prose, and its blocks at a glance."""
    prose = [text for _, text in links.prose(lines)]
    words = sum(len(re.sub(r"<!--.*?-->", "", text).split()) for text in prose)
    return words / WORDS_A_MINUTE + (len(lines) - len(prose)) / BLOCK_LINES_A_MINUTE


def check_page(number, lines):
    """Yields what is wrong with the text of a chapter."""
    text = "\n".join(lines)
    if not lines[0].startswith(f"# {number} "):
        yield f"the title does not begin with {number}"
    opening = next((m for line in lines[:4] if (m := OPENING.match(line))), None)
    if not opening:
        yield "no line '*N minutes. Needs: ...' below the title"
    elif not minutes(lines) <= int(opening[1]) <= LONGEST:
        yield f"{minutes(lines):.1f} minutes to read, {opening[1]} announced, {LONGEST} allowed"
    for command in ("tutorial", "exercise"):
        if f"./run {command} {number}\n" not in text:
            yield f"no command ./run {command} {number}"
    for mark, what in (("<!-- figure: ", "figure"), ("<!-- output: ", "output of the program"),
                       ("**Before you read on:**", "question before an answer"),
                       ("(exercise/README.md)", "link to the exercise")):
        if mark not in text:
            yield f"no {what}"


def check_neighbours(lines, before, after):
    """Yields what is wrong with the last line; `before` and `after` are folders, or None."""
    last = LINKS_AT_END.fullmatch(lines[-1])
    if not last:
        yield "the last line does not link to the neighbours and to all chapters"
        return
    expected = (f"../{before}/README.md" if before else None, "../README.md",
                f"../{after}/README.md" if after else None)
    if last.groups() != expected:
        yield f"the last line links to {', '.join(str(target) for target in last.groups())}"


def check_claims(root):
    """Yields the claims of tests/claims.json that no chapter cites where it comes to them."""
    text = "\n".join(page.read_text(encoding="utf-8")
                     for page in (root / "tutorials").glob("[0-9][0-9]_*/README.md"))
    cited = set(re.findall(r"\bC\d+\b", text))
    for claim in json.loads((root / "tests/claims.json").read_text(encoding="utf-8")):
        if claim["id"] not in cited:
            yield f"no chapter cites {claim['id']}: {claim['claim']}"


def check(root):
    """Yields (page, what)."""
    yield from (("tutorials/README.md", what) for what in check_claims(root))
    source = document(root)
    folders = {path.name[:2]: path.name for path in (root / "tutorials").glob("[0-9][0-9]_*")}
    table = (root / "tutorials/README.md").read_text(encoding="utf-8")
    for number, folder in sorted(folders.items()):
        page = f"tutorials/{folder}/README.md"
        row = next((line for line in table.splitlines() if f"({folder}/README.md)" in line), "")
        if not row.startswith("|") or NOT_YET in row:
            yield "tutorials/README.md", f"no row for {folder}, or one that says {NOT_YET}"
        if number == "00":
            continue  # the demo came before the form
        for file in ("README.md", "main.cpp", "exercise/README.md", "exercise/solution.cpp"):
            if not (root / "tutorials" / folder / file).is_file():
                yield page, f"no file {file} beside it"
        if not (root / page).is_file():
            continue
        lines = (root / page).read_text(encoding="utf-8").splitlines()
        before, after = (folders.get(f"{int(number) + step:02d}") for step in (-1, 1))
        for what in (*check_page(number, lines), *check_neighbours(lines, before, after),
                     *(check_citations(lines, source) if source else ())):
            yield page, what


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path("."))
    root = parser.parse_args().root.resolve()
    found = list(check(root))
    for page, what in found:
        print(f"{page}: {what}")
    if not document(root):
        print("chapters: the document is absent, its lines are not looked up")
    print(f"chapters: {len(found)} differences")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
