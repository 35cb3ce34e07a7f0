#!/usr/bin/env python3
"""The site: it builds, its links hold, its pages can be read.

    test_site.py site FOLDER     builds the project's site into FOLDER, checks it, looks at it
    test_site.py rules           plants one fault of each kind in a small site

Exit status 77: no pandoc here, nothing was tested.
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
SITE = ROOT / "docs/site"
sys.path.insert(0, str(ROOT / "tests/browser"))
import chromium  # noqa: E402
import look  # noqa: E402

SKIPPED = 77

GOOD = {
    "README.md": "# Front\n\n[there](docs/page.md#part) and [code](reference/a.hpp)\n",
    "docs/page.md": "# Page\n\n## Part\n\nIn $x$:\n\n```math\ny = x^2\n\\tag{7}\n```\n\n"
                    "<!-- code: reference/a.hpp#one -->\n```cpp\nint one = 1;\n```\n",
    "docs/README.md": "# Docs\n\n1. [page.md](page.md)\n",
    "docs/math.md": "# Mathematics\n",
    "tutorials/README.md": "# Tutorials\n",
    "tutorials/ring.html": "<!DOCTYPE html><title>ring</title><script>1</script>",
    "reference/a.hpp": "// <one> & only\nint one = 1;\n",
}
BAD = [  # a page, what is added to it, and what must be said
    ("README.md", "\n[gone](docs/gone.md)\n", "dead link docs/gone.html"),
    ("README.md", "\n[lost](docs/page.md#lost)\n", "no anchor #lost"),
    ("README.md", "\n[out](../../outside.md)\n", "dead link"),
    ("docs/page.md", "\n<script>1</script>\n", "has a script"),
    ("docs/page.md", '\n<img src="https://example.org/x.png">\n', "asks the network"),
    ("docs/page.md", "\n![a figure](gone.svg)\n", "dead link gone.svg"),
    ("docs/page.md", "\n```math\n\\nosuchmacro{x}\n```\n", "docs/page.md: "),
]


def expect(condition, what):
    if not condition:
        raise SystemExit(f"FAIL  {what}")


def build(root, out):
    """What site.py and check.py say, and whether both were content."""
    made = subprocess.run([sys.executable, SITE / "site.py", "--root", root, "--out", out],
                          capture_output=True, text=True)
    checked = subprocess.run([sys.executable, SITE / "check.py", out], capture_output=True,
                             text=True)
    return (made.stdout + made.stderr + checked.stdout + checked.stderr,
            made.returncode == 0 and checked.returncode == 0)


def rules():
    """Every planted fault is caught, and nothing without one."""
    with tempfile.TemporaryDirectory() as folder:
        root, out = pathlib.Path(folder) / "root", pathlib.Path(folder) / "out"
        for path, text in GOOD.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text, encoding="utf-8")
        said, content = build(root, out)
        expect(content, f"a good site is refused: {said}")
        page = (out / "docs/page.html").read_text(encoding="utf-8")
        for part in ('id="equation-7"', "<math", "(7)", 'href="../reference/a.hpp.html"',
                     'rel="prev"'):
            expect(part in page, f"no {part} in {page}")
        listing = (out / "reference/a.hpp.html").read_text(encoding="utf-8")
        expect("// &lt;one&gt; &amp; only" in listing, listing)
        for path, added, message in BAD:
            (root / path).write_text(GOOD[path] + added, encoding="utf-8")
            said, content = build(root, out)
            expect(not content and message in said, f"'{message}' is not in: {said}")
            (root / path).write_text(GOOD[path], encoding="utf-8")
    print(f"ok    {len(BAD)} faults caught")


LISTING = '<pre class="source">'


def to_look_at(out):
    """Every page but the listings of sources, of which the longest path of each kind is enough."""
    pages, listings = [], {}
    for path in sorted(out.rglob("*.html")):
        kind = pathlib.PurePath(path.stem).suffix
        if path.name == "ring.html":
            continue  # tests/browser/test_ring.py
        if LISTING not in path.read_text(encoding="utf-8"):
            pages.append(path)
        elif len(str(path)) > len(str(listings.get(kind, ""))):
            listings[kind] = path
    return pages + list(listings.values())


def all_figures(folder):
    """A page that holds every drawing of the tutorials, on white as the site shows images."""
    page = folder / "figures.html"
    drawings = [f"<h2>{path.relative_to(ROOT)}</h2>{path.read_text(encoding='utf-8')}"
                for path in sorted((ROOT / "tutorials").rglob("*.svg"))]
    page.write_text("<!DOCTYPE html><title>Figures</title><meta charset=utf-8>"
                    "<style>svg { max-width: 100%; height: auto; background: #fff }</style>"
                    '<meta name="viewport" content="width=device-width">' + "".join(drawings),
                    encoding="utf-8")
    return page, len(drawings)


def look_at(out):
    """The pages in a browser, narrow and wide, light and dark; and one that must be refused."""
    pages = to_look_at(out)
    with chromium.Browser() as browser, tempfile.TemporaryDirectory() as folder:
        figures, drawings = all_figures(pathlib.Path(folder))
        page = browser.open(figures)
        found = look.problems(page, "a figure")
        for path in pages:
            page.look_like(width=look.PHONE)
            page.load(path)
            found += look.from_all_sides(page, str(path.relative_to(out)))
        expect(not found, "\n      ".join(found))
        page.evaluate("document.querySelector('h1').style = 'color: #999; width: 100rem'")
        found = look.from_all_sides(page, "a page made too wide and too faint")
        for words in ("pixels wider than the window", "contrast"):
            expect(any(words in sentence for sentence in found), f"no {words} in {found}")
    print(f"ok    {len(pages)} pages and {drawings} figures looked at")


def site(folder):
    out = pathlib.Path(folder).resolve()
    said, content = build(ROOT, out)
    print(said, end="")
    expect(content, "the site is not what it should be")
    if chromium.find():
        look_at(out)
    else:
        print("the site in a browser: skipped, no chromium")


def main(arguments):
    if not shutil.which("pandoc"):
        print("site: skipped, no pandoc")
        return SKIPPED
    if arguments[0] == "rules":
        rules()
    else:
        site(arguments[1])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
