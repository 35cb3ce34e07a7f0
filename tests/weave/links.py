"""Links of the Markdown files: targets, anchors, paths in backticks, commands of ./run."""

import functools
import os
import re

LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)(?: \"[^\"]*\")?\)|\bsrc=\"([^\"]+)\"")
PATH = re.compile(r"`((?:reference|mpi|cuda|oracle|tests|docs|tutorials)/[\w./-]*\w/?)`")
COMMAND = re.compile(r"\./run ([a-z]+)")
HEADING = re.compile(r"#{1,6} (.+?)\s*#*$")
ANCHOR = re.compile(r"<a (?:id|name)=\"([^\"]+)\"")
# A line may name a file that does not exist yet if it says so.
NOT_YET = re.compile(r"\b(planned|later|reserved|not yet)\b", re.I)


def slug(heading):
    """The anchor that a forge makes of a heading."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    text = re.sub(r"[^\w\- ]", "", text.replace("`", "").lower())
    return text.replace(" ", "-")


def prose(lines):
    """Yields (number, line) outside fenced blocks, from 1."""
    fence = None
    for number, line in enumerate(lines, 1):
        mark = re.match(r"\s*(`{3,}|~{3,})", line)
        if fence is None and mark:
            fence = mark[1]
        elif fence and line.strip() == fence:
            fence = None
        elif fence is None:
            yield number, line


@functools.cache
def anchors(page):
    """All anchors of a Markdown file."""
    found, seen = set(), {}
    lines = page.read_text(encoding="utf-8").splitlines()
    for _, line in prose(lines):
        found |= set(ANCHOR.findall(line))
        if heading := HEADING.match(line):
            name = slug(heading[1])
            seen[name] = seen.get(name, -1) + 1
            found.add(f"{name}-{seen[name]}" if seen[name] else name)
    return found


@functools.cache
def run_commands(root):
    """The commands that ./run knows, from its own help."""
    script = root / "run"
    return set(COMMAND.findall(script.read_text(encoding="utf-8"))) if script.is_file() else set()


def led_to(root, page):
    """The pages to which a page leads: by links, by names in backticks, a folder by its README."""
    for _, line in prose((root / page).read_text(encoding="utf-8").splitlines()):
        beside = [(root / page).parent / (a or b).partition("#")[0] for a, b in LINK.findall(line)]
        for target in [*beside, *(root / path for path in PATH.findall(line))]:
            target = target / "README.md" if target.is_dir() else target
            if target.suffix == ".md" and target.is_file():
                yield os.path.relpath(target.resolve(), root)


def dead_ends(root, pages):
    """Yields (page, line, what) for the pages of docs/ and tutorials/ to which no page leads."""
    seen, to_visit = set(), ["README.md"]
    while to_visit:
        page = to_visit.pop()
        if page not in seen:
            seen.add(page)
            to_visit += led_to(root, page)
    for page in pages:
        # Decisions come one by one; their folder is the list, and its README a copy with titles.
        if page.startswith(("docs/", "tutorials/")) and page not in seen and \
                not page.startswith("docs/decisions/"):
            yield page, 1, "no page leads here from the front page"


def check(root, page, lines):
    """Yields (line, what) for every target that does not exist."""
    here = (root / page).parent
    for number, line in prose(lines):
        for link in (a or b for a, b in LINK.findall(line)):
            if re.match(r"[a-z]+:", link):
                continue  # the network is not asked
            path, _, anchor = link.partition("#")
            target = (here / path).resolve() if path else root / page
            if not target.exists() or not target.is_relative_to(root):
                yield number, f"dead link {link}"
            elif anchor and target.suffix == ".md" and anchor not in anchors(target):
                yield number, f"no anchor #{anchor} in {path or page}"
        for path in PATH.findall(line):
            if not (root / path).exists() and not NOT_YET.search(line):
                yield number, f"no file {path}"
    for number, line in enumerate(lines, 1):
        for command in COMMAND.findall(line):
            if command not in run_commands(root):
                yield number, f"./run has no command {command}"
