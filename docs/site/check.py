#!/usr/bin/env python3
"""Checks a built site: every link leads somewhere, nothing comes from a network, ids are unique.

    check.py FOLDER     exit 1 and one line "PAGE: what" for each fault
"""

import html.parser
import pathlib
import re
import sys
import urllib.parse

MOVING = {"tutorials/ring.html"}  # the one page with a script


class Page(html.parser.HTMLParser):
    """The links, ids and resources of a page."""

    def __init__(self, text):
        super().__init__()
        self.links, self.resources, self.ids, self.scripts = [], [], [], 0
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        if "id" in given:
            self.ids.append(given["id"])
        if tag == "a" and given.get("name"):
            self.ids.append(given["name"])
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag in ("img", "link", "script", "source", "iframe", "object"):
            for name in ("src", "href", "data"):
                if given.get(name):
                    self.resources.append(given[name])
        self.scripts += tag == "script"


def faults(folder):
    """Yields (page, what)."""
    pages = {path: Page(path.read_text(encoding="utf-8"))
             for path in sorted(folder.rglob("*.html"))}
    moving = {folder / name for name in MOVING}
    for path, page in pages.items():
        name = path.relative_to(folder).as_posix()
        for double in sorted({i for i in page.ids if page.ids.count(i) > 1}):
            yield name, f"two elements have the id {double}"
        if page.scripts and name not in MOVING:
            yield name, "a page of text has a script"
        for link in page.resources:
            if re.match(r"[a-z]+:|//", link):
                yield name, f"asks the network for {link}"
        for link in page.links + page.resources:
            if re.match(r"[a-z]+:", link):
                continue  # an address outside; the network is not asked
            target, _, anchor = urllib.parse.unquote(link).partition("#")
            there = (path.parent / target).resolve() if target else path
            if not there.is_file() or not there.is_relative_to(folder):
                yield name, f"dead link {link}"
            elif there in moving:
                continue  # what follows the # is read by its script
            elif anchor and there in pages and anchor not in pages[there].ids:
                yield name, f"no anchor #{anchor} in {target or name}"


def main(folder):
    found = list(faults(folder))
    for page, what in found:
        print(f"{page}: {what}")
    print(f"check: {len(list(folder.rglob('*.html')))} pages, {len(found)} faults")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve()))
