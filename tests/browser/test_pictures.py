#!/usr/bin/env python3
"""The pictures of the front page against the pages they show: none has gone stale.

    test_pictures.py BIN     BIN holds ringproof

The page is opened again and two things are compared with the picture: every word that can be read
on it, for equality, and the look, coarsely (both shrunk to a few pixels), because no two machines
draw a letter alike. Then a picture with one changed digit and one of a dark page must be refused.
docs/pictures/demo.svg is text, and held to the demo's output byte for byte by tests/weave/weave.py.

Exit status 77: no Chromium here, nothing was tested.
"""

import base64
import difflib
import os
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import chromium  # noqa: E402
import screenshots  # noqa: E402

SKIPPED = 77
PICTURES = screenshots.ROOT / "docs/pictures"
COLUMNS, ROWS = 32, 20
# Of 255 levels, for the mean colour of a cell; another font moves a cell by a few levels, another
# layout or colour scheme by a hundred. At most so many of the cells may exceed it.
LEVELS, CELLS = 40, COLUMNS * ROWS // 50
SHRUNK = f"""(async (source) => {{
    const image = new Image();
    image.src = source;
    await image.decode();
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [{COLUMNS}, {ROWS}];
    const context = canvas.getContext("2d");
    context.imageSmoothingQuality = "high";
    context.drawImage(image, 0, 0, {COLUMNS}, {ROWS});
    return [image.width, image.height, ...context.getImageData(0, 0, {COLUMNS}, {ROWS}).data];
}})"""


def shrunk(page, png):
    data = base64.b64encode(png).decode()
    return page.evaluate(f"{SHRUNK}('data:image/png;base64,{data}')")


def stale(page, png, picture, text):
    """How a stored picture differs from what its page shows now, as sentences."""
    stored = screenshots.description(png)
    if stored is None:
        return ["it does not carry its words"]
    lines = [line for line in difflib.unified_diff(stored.split("\n"), text.split("\n"), "picture",
                                                   "page", lineterm="", n=0)]
    found = [" | ".join(lines[:8])] if lines else []
    before, now = shrunk(page, png), shrunk(page, picture)
    if before[:2] != now[:2]:
        found.append(f"it has {before[:2]} pixels, the page {now[:2]}")
    far = sum(any(abs(before[at + n] - now[at + n]) > LEVELS for n in range(3))
              for at in range(2, len(now), 4))
    if far > CELLS:
        found.append(f"it looks different in {far} of {COLUMNS * ROWS} places")
    return found


def check(bin_folder):
    os.environ["PATH"] = f"{bin_folder}{os.pathsep}{os.environ['PATH']}"
    problems = []
    with screenshots.pages() as shown:
        for name, page in shown.items():
            png = (PICTURES / name).read_bytes()
            picture, text = screenshots.shot(page)
            problems += [f"{name}: {what}; ./run docs takes it anew"
                         for what in stale(page, png, picture, text)]
            # The check must see a changed digit, and a page that looks otherwise.
            digit = next(c for c in text if c.isdigit())
            changed = text.replace(digit, str((int(digit) + 1) % 10), 1)
            if not stale(page, screenshots.with_description(picture, changed), picture, text):
                problems.append(f"{name}: a changed digit is not seen")
            page.look_like(**screenshots.LOOKS[name], dark=True)
            dark, _ = screenshots.shot(page)
            if not stale(page, screenshots.with_description(dark, text), picture, text):
                problems.append(f"{name}: a dark picture of a light page is not seen")
    return problems


def main(arguments):
    if not chromium.find():
        print("pictures: skipped, no chromium")
        return SKIPPED
    problems = check(pathlib.Path(arguments[0]).resolve())
    print("\n".join(problems) or "the pictures say what their pages say")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
