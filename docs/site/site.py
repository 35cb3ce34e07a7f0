#!/usr/bin/env python3
"""The documentation as a site: every Markdown page as HTML, and the sources that pages link to.

    site.py [--out FOLDER]      default build/site; the folder is made anew

The site opens from disk. Formulas are MathML, which browsers draw themselves: no script, no font,
no network. Needs pandoc. Exit 1 with one line for each page that pandoc complains about. Links are
rewritten here and checked by check.py.
"""

import argparse
import concurrent.futures
import html
import os
import pathlib
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT / "tests/style"))
import sources  # noqa: E402

PANDOC = ["pandoc", "--from=gfm+tex_math_dollars", "--to=html5", "--mathml",
          "--wrap=preserve", f"--lua-filter={HERE / 'filter.lua'}"]
LINK = re.compile(r'(<(?:a|img)\b[^>]*?\b(?:href|src)=")([^"]*)(")')
HEADING = re.compile(r'<h2 id="([^"]+)">(.*?)</h2>', re.S)
TITLE = re.compile(r"<h1[^>]*>(.*?)</h1>", re.S)
FOLDERS = "reference|mpi|cuda|oracle|tests|docs|tutorials"
FIGURE = re.compile(r'<p>(<img\b[^>]*?src="[^"]*\.svg"[^>]*>)\s*</p>', re.S)
PATH = re.compile(rf"(?<!>)<code>((?:{FOLDERS})/[\w./-]*)</code>")
COPIED = {".html", ".svg", ".png", ".jpg", ".css", ".pdf"}
MOST_SOURCE_BYTES = 300_000


def page_of(path):
    """Where a file of the project lies in the site: a page, a listing of source, or a copy."""
    path = pathlib.PurePosixPath(path)
    if path.name == "README.md":
        return path.with_name("index.html")
    if path.suffix == ".md":
        return path.with_suffix(".html")
    return path if path.suffix in COPIED else path.with_name(path.name + ".html")


def relative(target, page):
    return pathlib.PurePosixPath(os.path.relpath(target, page.parent)).as_posix()


class Site:
    """The project's files, what of them is linked to, and the order of reading."""

    def __init__(self, root, out):
        self.root, self.out = root, out
        self.files = set(sources.files(root))
        self.pages = sorted(path for path in self.files if path.endswith(".md"))
        self.linked, self.folders, self.complaints = set(), set(), []
        chapters = sorted(p for p in self.pages if re.match(r"tutorials/\d\d_[^/]+/README\.md", p))
        self.orders = [["tutorials/README.md", *chapters], self.order_of("docs/README.md")]

    def order_of(self, page):
        """A page and the pages beside it that it links to, in its order."""
        if page not in self.files:
            return []
        text = (self.root / page).read_text(encoding="utf-8")
        folder = pathlib.PurePosixPath(page).parent
        order = [page]
        for link in re.findall(r"\]\(([\w./-]+\.md)\)", text):
            path = os.path.normpath(folder / link)
            if path in self.files and path not in order and path.startswith(f"{folder}/"):
                order.append(path)
        return order

    def target(self, link, path):
        """The address in the site of what a page links to."""
        if not link or re.match(r"[a-z]+:|#", link):
            return link
        name, mark, anchor = link.partition("#")
        found = pathlib.PurePosixPath(os.path.normpath(pathlib.PurePosixPath(path).parent / name))
        if (self.root / found).is_dir():
            readme = found / "README.md"
            if str(readme) not in self.files:
                self.folders.add(found)
            there = found / "index.html"
        else:
            there = page_of(found)
            if found.suffix != ".md":
                self.linked.add(str(found))
        return relative(there, page_of(path)) + mark + anchor

    def neighbours(self, path):
        """Links to the pages before and after this one in its order."""
        for order in self.orders:
            if path in order:
                here = order.index(path)
                before = order[here - 1] if here else None
                after = order[here + 1] if here + 1 < len(order) else None
                return before, after
        return None, None

    def title(self, path):
        lines = (self.root / path).read_text(encoding="utf-8").splitlines()
        first = next((line for line in lines if line.startswith("# ")), f"# {path}")
        return html.escape(first[2:].replace("`", ""))

    def frame(self, path, title, body):
        """A whole page around its body."""
        page = page_of(path)

        def link(target, text, extra=""):
            return f'<a{extra} href="{relative(pathlib.PurePosixPath(target), page)}">{text}</a>'
        before, after = self.neighbours(path)
        steps = [(link(page_of(p), f"{arrow[0]}{self.title(p)}{arrow[1]}", f' rel="{rel}"'))
                 for p, rel, arrow in ((before, "prev", ("← ", "")), (after, "next", ("", " →")))
                 if p]
        around = f'<nav class="around" aria-label="Neighbours">{"".join(steps)}</nav>'
        return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title} · ringproof</title>
<link rel="stylesheet" href="{relative(pathlib.PurePosixPath('site.css'), page)}">
</head>
<body>
<header class="top">
{link("index.html", "ringproof", ' class="home"')}
<nav aria-label="Site">{link("tutorials/index.html", "Tutorials")}
{link("tutorials/ring.html", "Interactive ring")}
{link("docs/index.html", "I want to …")}
{link("docs/math.html", "Mathematics")}</nav>
</header>
<main>
{body}
</main>
<footer>
{around if steps else ""}
<p>{html.escape(str(path))}</p>
</footer>
</body>
</html>
"""

    def path_link(self, match, up):
        """A file or folder named in backticks becomes a link to it."""
        exists = (self.root / match[1]).exists()
        return f'<a href="{up}{match[1]}">{match[0]}</a>' if exists else match[0]

    def convert(self, path):
        """One Markdown page, with its contents if it is long."""
        up = relative(pathlib.PurePosixPath("x"), pathlib.PurePosixPath(path)).removesuffix("x")
        text = (self.root / path).read_text(encoding="utf-8")
        # Some versions of pandoc read such fences themselves, but not the numbers in them.
        text = re.sub(r"^( *)```math$", r"\1```formula", text, flags=re.M)
        done = subprocess.run([*PANDOC, f"--metadata=up:{up}"], input=text, capture_output=True,
                              text=True)
        if done.returncode or done.stderr.strip():
            self.complaints.append(f"{path}: {' '.join(done.stderr.split())}")
        body = PATH.sub(lambda m: self.path_link(m, up), done.stdout)
        body = LINK.sub(lambda m: m[1] + self.target(m[2], path) + m[3], body)
        body = FIGURE.sub(r'<div class="figure">\1</div>', body)  # may scroll by itself
        body = body.replace("<table>", '<div class="wide"><table>').replace("</table>",
                                                                         "</table></div>")
        headings = HEADING.findall(body)
        if len(headings) >= 4:
            lines = "".join(f'<li><a href="#{anchor}">{re.sub("</?a[^>]*>", "", text)}</a></li>'
                            for anchor, text in headings)
            contents = f"<details><summary>On this page</summary><ul>{lines}</ul></details>"
            body = re.sub("</h1>", lambda m: m[0] + contents, body, count=1)
        return self.frame(path, self.title(path), body)

    def listing(self, path):
        """A source file as a page, its lines numbered and with anchors."""
        data = (self.root / path).read_bytes()
        try:
            text = data[:MOST_SOURCE_BYTES].decode("utf-8")
        except UnicodeDecodeError:
            text = f"{len(data)} bytes that are no text\n"
        lines = "".join(f'<span id="L{n}">{html.escape(line)}\n</span>'
                        for n, line in enumerate(text.splitlines(), 1))
        body = f'<h1 class="path">{html.escape(path)}</h1>\n<pre class="source">{lines}</pre>'
        return self.frame(path, html.escape(path), body)

    def index(self, folder):
        """A folder that has no README but is linked to: what lies in it."""
        inside = sorted(p for p in self.files if pathlib.PurePosixPath(p).parent == folder)
        self.linked |= {p for p in inside if not p.endswith(".md")}
        items = "".join(f'<li><a href="{page_of(p).name}">{html.escape(p)}</a></li>'
                        for p in inside)
        name = html.escape(f"{folder}/")
        body = f'<h1 class="path">{name}</h1><ul>{items}</ul>'
        return self.frame(str(folder / "README.md"), name, body)

    def write(self, page, text):
        target = self.out / page
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")

    def build(self):
        shutil.rmtree(self.out, ignore_errors=True)
        self.out.mkdir(parents=True)
        shutil.copy(HERE / "site.css", self.out)
        self.linked.add("tutorials/ring.html")
        jobs = int(os.environ.get("RINGPROOF_JOBS", os.cpu_count() or 1))
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            for path, text in zip(self.pages, pool.map(self.convert, self.pages)):
                self.write(page_of(path), text)
        for folder in sorted(self.folders):
            self.write(folder / "index.html", self.index(folder))
        for path in sorted(self.linked):
            if not (self.root / path).is_file():
                continue  # a dead link: check.py says so
            if pathlib.PurePosixPath(path).suffix in COPIED:
                (self.out / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(self.root / path, self.out / path)
            else:
                self.write(page_of(path), self.listing(path))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=pathlib.Path, default=ROOT)
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "build/site")
    given = parser.parse_args()
    if not shutil.which("pandoc"):
        print("site: pandoc is not installed", file=sys.stderr)
        return 1
    site = Site(given.root.resolve(), given.out.resolve())
    site.build()
    for complaint in site.complaints:
        print(f"site: {complaint}")
    print(f"site: {len(site.pages)} pages, {len(site.linked)} files, "
          f"{len(site.complaints)} complaints: {given.out / 'index.html'}")
    return 1 if site.complaints else 0


if __name__ == "__main__":
    sys.exit(main())
