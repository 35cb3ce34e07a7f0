"""What a reader would stumble over in a page as it stands: complaints of the browser, scrolling
sideways, text that is hard to read. Shared by the tests of pages."""

import pathlib

CONTRAST = (pathlib.Path(__file__).parent / "contrast.js").read_text(encoding="utf-8")
PHONE, DESKTOP = 390, 1280
# How pages are looked at: (width in pixels, dark).
LOOKS = [(width, dark) for width in (PHONE, DESKTOP) for dark in (False, True)]


def name(width, dark):
    return f"{width} px, {'dark' if dark else 'light'}"


def problems(page, where):
    """Sentences, each with the place; none for a page that can be read."""
    found = [f"{where}: {error}" for error in page.errors]
    if (wider := page.wider_than_window()) > 0:
        found.append(f"{where}: {wider} pixels wider than the window")
    found += [f"{where}: contrast {low['ratio']} of '{low['text']}'"
              for low in page.evaluate(CONTRAST)]
    return found


def from_all_sides(page, where):
    """The same in all four looks, without loading the page again."""
    found = []
    for width, dark in LOOKS:
        page.look_like(width=width, dark=dark)
        found += problems(page, f"{where} at {name(width, dark)}")
    return found
