#!/usr/bin/env python3
"""Pictures for the front page, made anew from the running programs.

    screenshots.py FOLDER [--bin build/bin] [--report FILE.html]

writes into FOLDER: ring.png, ring-dark.png and ring-phone.png (the interactive ring), demo.svg
(what `ringproof-demo` prints, as a drawing, so that it stays text), and report.png of a report in
HTML if one is named. Needs Chromium for all but demo.svg.
"""

import argparse
import html
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE))
import chromium  # noqa: E402

LINE_HEIGHT, MARGIN, TITLE = 18, 18, 34
CHARACTER_WIDTH = 7.85  # of the monospaced fonts at 13 px, the widest of the usual ones
MARKED = {"PASS": "#7ee2a0", "FAIL": "#ff9aa5", "UNDECIDED": "#ffd479"}
RING = "#ranks=4&rows=16&layout=zigzag&mask=causal&time=1&row=12"


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


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/bin")
    parser.add_argument("--report", type=pathlib.Path)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)

    demo = subprocess.run([given.bin / "ringproof-demo"], cwd=ROOT, capture_output=True, text=True,
                          check=True)
    (given.folder / "demo.svg").write_text(terminal("./run demo", demo.stdout), encoding="utf-8")
    made = ["demo.svg"]
    if not chromium.find():
        print("screenshots: no chromium, only demo.svg")
        return 0
    ring = f"file://{ROOT / 'tutorials/ring.html'}{RING}"
    shots = [("ring.png", ring, dict(width=1280, height=780)),
             ("ring-dark.png", ring, dict(width=1280, height=780, dark=True)),
             ("ring-phone.png", ring, dict(width=390, height=1460, scale=2))]
    if given.report:
        shots.append(("report.png", given.report.resolve(), dict(width=1280, height=900)))
    with chromium.Browser() as browser:
        for name, address, look in shots:
            page = browser.open(address, **look)
            if page.errors:
                raise SystemExit(f"screenshots: {address}: {page.errors}")
            page.screenshot(given.folder / name)
            made.append(name)
    print(f"screenshots: {', '.join(made)} in {given.folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
