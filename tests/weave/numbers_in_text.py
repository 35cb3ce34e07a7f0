"""Numbers in the prose of the tutorials: each stands in a block that a program or a source wrote.

A tutorial quotes results in its sentences. What looks like a result, a decimal fraction or a number
of three or more digits, must occur in some woven block or value of the same page; then it cannot
drift alone. Numbers of one or two digits (four ranks, chapter 02) are the author's.
"""

import re

import links

WOVEN = re.compile(r"\s*<!-- (?:code|output): .+? -->\s*$")
VALUE = re.compile(r"<!-- value: .+? -->(.*?)<!-- /value -->")
RESULT = re.compile(r"(?<![\w.-])(?:\d+\.\d+|\d{3,})(?![\w-])")
ANY = re.compile(r"\d+(?:\.\d+)?")
# What is no result: comments, targets of links, lines of the document, names of files.
NO_RESULT = re.compile(r"<!--.*?-->|\]\([^)]*\)|\blines? \d+(?:(?:,| to| and) \d+)*"
                       r"|\w[\w/]*/[\w./-]+")


def woven(lines):
    """All numbers of the woven blocks and values of a page."""
    found, inside, fence, due = set(), False, None, False
    for line in lines:
        mark = re.match(r"\s*(`{3,}|~{3,})", line)
        if fence is None and mark:
            fence, inside = mark[1], due
        elif fence is not None and line.strip() == fence:
            fence, inside = None, False
        elif inside:
            found |= set(ANY.findall(line))
        elif fence is None:
            for value in VALUE.findall(line):
                found |= set(ANY.findall(value))
        if fence is None and line.strip():
            due = bool(WOVEN.match(line))
    return found


def check(page, lines):
    """Yields (line, what) for every number of the prose that no woven block of the page has."""
    if not page.startswith("tutorials/"):
        return
    known = woven(lines)
    for number, line in links.prose(lines):
        for result in RESULT.findall(NO_RESULT.sub(" ", line)):
            if result not in known:
                yield number, f"{result} stands in no woven block of the page"
