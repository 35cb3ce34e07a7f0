"""The form of the chapters: true chapters pass, each planted fault does not."""

import pathlib
import sys
import tempfile
import unittest
import unittest.mock

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import chapters  # noqa: E402

TABLE = "| chapter |\n|---|\n| [00](00_demo/README.md) |\n| [01](01_row/README.md) |\n" \
        "| [02](02_blocks/README.md) |\n| 03 The ring (not yet) |\n"
PAGE = """# {number} A title

*2 minutes. Needs: nothing. Gives: something.*

```sh
./run tutorial {number}
./run exercise {number}
```

**Before you read on:** which? See line 3 (C1).

<!-- output: tutorial-{number} -->
```text
this one
```

<!-- figure: tutorial-{number} svg -->
![A figure](a.svg)

[The task](exercise/README.md).

[← before](../{before}/README.md) · [all chapters](../README.md) · {after}
"""
NEXT = "[02 →](../02_blocks/README.md)"


class Chapters(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name) / "ringproof"
        self.root.mkdir()
        environment = unittest.mock.patch.dict(chapters.os.environ)
        environment.start()
        self.addCleanup(environment.stop)
        chapters.os.environ.pop("RINGPROOF_SHARED", None)
        self.write("../shared/document.txt", "A title\n\nA text\n")
        self.write("tests/claims.json", '[{"id": "C1", "claim": "Rows are dealt."}]')
        self.write("tutorials/README.md", TABLE)
        self.write("tutorials/00_demo/README.md", "# The demo\n")
        for name, before, after in (("01_row", "00_demo", NEXT),
                                    ("02_blocks", "01_row", "03 The ring (not yet)")):
            text = PAGE.format(number=name[:2], before=before, after=after)
            self.write(f"tutorials/{name}/README.md", text)
            for file in ("main.cpp", "exercise/README.md", "exercise/solution.cpp"):
                self.write(f"tutorials/{name}/{file}", "")

    def write(self, path, text):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text, encoding="utf-8")

    def expect(self, old, new, words, path="tutorials/01_row/README.md"):
        """One edit gives exactly one difference, which says these words."""
        text = (self.root / path).read_text(encoding="utf-8")
        self.assertEqual(text.count(old), 1)
        self.write(path, text.replace(old, new))
        found = [what for _, what in chapters.check(self.root)]
        self.assertEqual(len(found), 1, found)
        self.assertIn(words, found[0])

    def test_true_chapters_pass(self):
        self.assertEqual(list(chapters.check(self.root)), [])

    def test_a_claim_that_no_chapter_comes_to(self):
        self.expect('"C1"', '"C2"', "no chapter cites C2: Rows are dealt", "tests/claims.json")

    def test_a_chapter_longer_than_it_says(self):
        self.expect("which?", "which " * 400, "2 announced")

    def test_a_chapter_longer_than_a_quarter_of_an_hour(self):
        self.expect("*2 minutes", "*16 minutes", "15 allowed")

    def test_a_chapter_without_its_commands(self):
        self.expect("./run exercise 01", "./run exercise 02", "no command ./run exercise 01")

    def test_a_chapter_without_a_figure(self):
        self.expect("<!-- figure: tutorial-01 svg -->", "", "no figure")

    def test_a_chapter_without_a_question(self):
        self.expect("**Before you read on:**", "And", "no question")

    def test_a_line_of_the_document_that_is_empty(self):
        self.expect("See line 3", "See lines 2 and 3", "cites line 2")

    def test_a_line_behind_the_end_of_the_document(self):
        self.expect("See line 3", "See lines 1 to 4", "cites line 4")

    def test_a_link_to_the_wrong_neighbour(self):
        self.expect("../02_blocks/", "../00_demo/", "the last line links to")

    def test_a_next_chapter_that_is_there_but_not_linked(self):
        self.expect(NEXT, "02 (not yet)", "the last line links to")

    def test_a_chapter_that_the_table_lacks(self):
        self.expect("| [02](02_blocks/README.md) |\n", "", "no row for 02_blocks",
                    "tutorials/README.md")

    def test_a_chapter_without_its_exercise(self):
        (self.root / "tutorials/02_blocks/exercise/solution.cpp").unlink()
        self.assertEqual([what for _, what in chapters.check(self.root)],
                         ["no file exercise/solution.cpp beside it"])


if __name__ == "__main__":
    unittest.main()
