#!/usr/bin/env python3
"""The page of `ringproof check --report html=F`, looked at: on a desktop and on a phone, light and
dark, with scripts off.

    test_report.py RINGPROOF
"""

import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "report")]
import cases  # noqa: E402
import chromium  # noqa: E402
import look as looks  # noqa: E402

SKIPPED = 77


def look(page, what):
    """What is wrong with a page as it stands."""
    problems = looks.problems(page, what)
    # Everything a reader can open is looked at.
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    problems += looks.problems(page, f"{what}, opened")
    pictures = page.evaluate("[...document.querySelectorAll('figure svg')]"
                             ".map(s => s.getBoundingClientRect()).filter(r => r.width < 4 ||"
                             " r.height < 4 || r.right > innerWidth).length")
    if pictures:
        problems.append(f"{what}: {pictures} pictures that nobody sees whole")
    return problems


def main(program):
    if chromium.find() is None:
        print("skipped: no Chromium to look at the report")
        return SKIPPED
    with tempfile.TemporaryDirectory() as folder:
        paths = cases.write_all(pathlib.Path(folder))
        report = pathlib.Path(folder) / "report.html"
        subprocess.run([program, "check", *map(str, paths.values()), "--report", f"html={report}"],
                       capture_output=True, check=False)
        problems = []
        with chromium.Browser() as browser:
            for width, dark in looks.LOOKS:
                page = browser.open(report, width=width, dark=dark, scripts=False)
                problems += look(page, looks.name(width, dark))
                heading = page.evaluate("document.querySelector('h1').innerText")
                if heading != "BAD INPUT":
                    problems.append(f"the heading is {heading}")
    print("\n".join(problems) or "the report at 390 and 1280 pixels, light and dark: all well")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
