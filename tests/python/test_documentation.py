"""What docs/python.md shows is what happens. RINGPROOF_WRITE=1 writes the expected texts anew."""

import contextlib
import io
import os
import pathlib

import example

HERE = pathlib.Path(__file__).parent


def compared(text, name):
    path = HERE / name
    if os.environ.get("RINGPROOF_WRITE"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def printed(function):
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        function()
    return text.getvalue()


def test_the_first_example_prints_what_the_page_shows():
    compared(printed(example.judged), "example.txt")


def test_the_failure_reads_as_the_page_shows():
    compared(printed(example.explained), "failure.txt")


def test_the_test_file_of_the_page_fails_with_that_text(pytester):
    pytester.syspathinsert(HERE)
    source = (HERE / "example_test_file.py").read_text(encoding="utf-8")
    pytester.makepyfile(test_example=source)
    result = pytester.runpytest()
    result.assert_outcomes(failed=1)
    first, second = (HERE / "failure.txt").read_text(encoding="utf-8").splitlines()
    assert first.split()[0] == "FAIL"
    assert second in result.stdout.lines
