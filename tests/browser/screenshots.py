#!/usr/bin/env python3
"""Pictures of the front page, made by the running programs.

    screenshots.py FOLDER [--bin build/bin]   writes demo.svg, ring.png and report.png into FOLDER
    screenshots.py --demo                     prints demo.svg alone, with ringproof-demo on the path

demo.svg is what `ringproof-demo` prints, as a drawing, so that it stays text. The others are pages
as Chromium shows them. Each carries the words that stood on the page, in a text chunk of the PNG
named "Description", by which tests/browser/test_pictures.py sees whether it has gone stale.
"""

import argparse
import base64
import contextlib
import html
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import zlib

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE))
import chromium  # noqa: E402

LINE_HEIGHT, MARGIN, TITLE = 18, 18, 34
CHARACTER_WIDTH = 7.85  # of the monospaced fonts at 13 px, the widest of the usual ones
MARKED = {"PASS": "#7ee2a0", "FAIL": "#ff9aa5", "UNDECIDED": "#ffd479"}
RING = "#ranks=4&rows=16&layout=zigzag&mask=causal&time=1&row=12"
ANSWER = "tests/data/smollm2_l12_n256_g0.bf16.torch_flash.safetensors"
CONTRACT = "bf16-flash"
LOOKS = {"ring.png": dict(width=1280, height=780), "report.png": dict(width=1280, height=1092)}
CHUNK = b"iTXt"
KEYWORD = b"Description"


def terminal(command, text):
    """A terminal window with a command and its output, as SVG; verdicts are coloured."""
    lines = [f"$ {command}", *text.rstrip("\n").split("\n")]
    width = round(max(map(len, lines)) * CHARACTER_WIDTH) + 2 * MARGIN
    height = TITLE + MARGIN + len(lines) * LINE_HEIGHT
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" role="img" font-size="13" fill="#e6e4df" '
        'font-family="ui-monospace, SF Mono, Menlo, Consolas, DejaVu Sans Mono, monospace">',
        f"<title>{html.escape(command)}, run in a terminal</title>",
        '<rect width="100%" height="100%" rx="9" fill="#15181d"/>',
        *(f'<circle cx="{18 + 18 * n}" cy="17" r="5" fill="#4a505b"/>' for n in range(3))]
    for number, line in enumerate(lines):
        text = html.escape(line).replace(" ", "\u00a0")  # so that columns stay columns
        for word, fill in MARKED.items():
            text = text.replace(word, f'<tspan fill="{fill}" font-weight="bold">{word}</tspan>')
        y = TITLE + (number + 1) * LINE_HEIGHT - 4
        parts.append(f'<text x="{MARGIN}" y="{y}">{text}</text>')
    return "\n".join([*parts, "</svg>", ""])


def demo():
    done = subprocess.run(["ringproof-demo"], cwd=ROOT, capture_output=True, text=True, check=True)
    return terminal("./run demo", done.stdout)


def words(page):
    """What can be read in the window, in the order of the page: one line a text."""
    return page.evaluate("""(() => {
        const found = [];
        const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
        for (let node = walker.nextNode(); node; node = walker.nextNode()) {
          const text = node.data.trim().replace(/\\s+/g, " ");
          if (!text || node.parentElement.closest("script, style, noscript, title")) continue;
          const range = document.createRange();
          range.selectNodeContents(node);
          const box = range.getBoundingClientRect();
          if (box.width && box.height && box.bottom > 0 && box.top < innerHeight) found.push(text);
        }
        return found.join("\\n");
    })()""")


def with_description(png, text):
    """A PNG with a text chunk before its end."""
    body = CHUNK + KEYWORD + b"\0\0\0\0\0" + text.encode()
    chunk = struct.pack(">I", len(body) - 4) + body + struct.pack(">I", zlib.crc32(body))
    return png[:-12] + chunk + png[-12:]  # the last twelve bytes are the chunk IEND


def description(png):
    """The text of that chunk, or None."""
    at = 8
    while at < len(png):
        length, kind = struct.unpack_from(">I4s", png, at)
        data = png[at + 8:at + 8 + length]
        if kind == CHUNK and data.startswith(KEYWORD + b"\0"):
            return data[len(KEYWORD) + 5:].decode()
        at += length + 12
    return None


@contextlib.contextmanager
def pages():
    """{"ring.png": page, "report.png": page} as the pictures show them, made anew."""
    with tempfile.TemporaryDirectory() as folder, chromium.Browser() as browser:
        report = pathlib.Path(folder) / "report.html"
        done = subprocess.run(["ringproof", "check", ANSWER, "--contract", CONTRACT, "--report",
                               f"html={report}"], cwd=ROOT, capture_output=True, text=True)
        if not report.is_file():
            raise SystemExit(f"screenshots: no report: {done.stderr}")
        yield {"ring.png": browser.open(f"file://{ROOT / 'tutorials/ring.html'}{RING}",
                                        **LOOKS["ring.png"]),
               "report.png": browser.open(report, **LOOKS["report.png"])}


def shot(page):
    """The page as a PNG, and the words that can be read on it."""
    page.send("Page.bringToFront")  # a page behind another one is not drawn
    data = base64.b64decode(page.send("Page.captureScreenshot", format="png")["data"])
    return data, words(page)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path, nargs="?")
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/bin")
    parser.add_argument("--demo", action="store_true")
    given = parser.parse_args()
    os.environ["PATH"] = f"{given.bin.resolve()}{os.pathsep}{os.environ['PATH']}"
    if given.demo:
        sys.stdout.write(demo())
        return 0
    given.folder.mkdir(parents=True, exist_ok=True)
    (given.folder / "demo.svg").write_text(demo(), encoding="utf-8")
    if not chromium.find():
        print("screenshots: no chromium, only demo.svg")
        return 0
    with pages() as shown:
        for name, page in shown.items():
            picture, text = shot(page)
            if page.errors:
                raise SystemExit(f"screenshots: {name}: {page.errors}")
            old = given.folder / name
            # A picture that says the same stays: fonts differ between machines, words do not.
            if not old.is_file() or description(old.read_bytes()) != text:
                old.write_bytes(with_description(picture, text))
                print(f"screenshots: {old} taken anew")
    return 0


if __name__ == "__main__":
    sys.exit(main())
