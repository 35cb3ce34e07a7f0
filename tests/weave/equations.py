"""Equation numbers: what is cited as (7) must be numbered (7) on the page that is meant."""

import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "style"))
import cpp_text  # noqa: E402
import links  # noqa: E402

# Which page the bare numbers in the comments of a folder mean; "NAME.md (7)" names another page.
PAGE_OF = {
    "reference/": "docs/math.md",
    "mpi/": "docs/math.md",
    "cuda/": "docs/math.md",
    "tutorials/": "docs/math.md",
    "oracle/truth/": "docs/double_double.md",
    "oracle/contract/": "docs/contract.md",
    "oracle/judge/": "docs/contract.md",
    "oracle/capi/": "docs/contract.md",
    "oracle/cli/": "docs/contract.md",
}
NUMBER = r"\((\d{1,2}[a-z]?)\)"
# A number counts as an equation if it stands alone in parentheses, after a word or another number.
CITED = re.compile(rf"(?<![\w\]]){NUMBER}")
NAMED = re.compile(rf"\b(\w+\.md)\)?[,:]? (?:equation )?((?:{NUMBER}[ ,-]*(?:and |to )?)+)")
NAMED_BEHIND = re.compile(rf"((?:{NUMBER}[ ,-]*(?:and |to )?)+)of \[?`?(?:docs/)?(\w+\.md)")
TAGGED = re.compile(r"\\tag\{(\d{1,2}[a-z]?)\}")
AT_END = re.compile(rf"{NUMBER}\**\s*[`|]?\s*$", re.M)
SOURCES = ("*.hpp", "*.cpp", "*.h", "*.c", "*.cu", "*.cuh")


def defined(page):
    """The numbers of a page: \\tag{7}, or, on a page without any tag, (7) at the end of a line."""
    if not page.is_file():
        return None
    text = page.read_text(encoding="utf-8")
    return set(TAGGED.findall(text)) or set(AT_END.findall(text))


def citations(folder, comment):
    """Yields (page, number) for the equations that one comment line cites."""
    named = []
    for pattern, numbers, page in ((NAMED, 2, 1), (NAMED_BEHIND, 1, 3)):
        for match in pattern.finditer(comment):
            named.append(match.span())
            for number in re.findall(NUMBER, match[numbers]):
                yield "docs/" + match[page], number
    for match in CITED.finditer(comment):
        inside = any(begin <= match.start() < end for begin, end in named)
        if not inside and PAGE_OF.get(folder):
            yield PAGE_OF[folder], match[1]


def check(root):
    """Yields (path, line, what) for every citation without its equation."""
    known = {}

    def problem(page, number):
        if page not in known:
            known[page] = defined(root / page)
        if known[page] is None:
            return f"cites ({number}) of {page}, which does not exist"
        if number not in known[page]:
            return f"cites ({number}), but {page} has no such equation"
        return None

    for folder in PAGE_OF:
        for pattern in SOURCES:
            for path in sorted((root / folder).rglob(pattern)):
                _, comments = cpp_text.split(path.read_text(encoding="utf-8"))
                for line, comment in enumerate(comments, 1):
                    for page, number in citations(folder, comment):
                        if what := problem(page, number):
                            yield str(path.relative_to(root)), line, what
    for path in sorted((root / "docs").rglob("*.md")) + sorted((root / "tutorials").rglob("*.md")):
        # In the tutorials a bare number means an equation, too; elsewhere its page must be named.
        folder = "tutorials/" if path.is_relative_to(root / "tutorials") else None
        for line, text in links.prose(path.read_text(encoding="utf-8").splitlines()):
            for page, number in citations(folder, text):
                if what := problem(page, number):
                    yield str(path.relative_to(root)), line, what
