"""The weave check catches what it is there for: a true page passes, each planted drift does not."""

import pathlib
import stat
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import weave  # noqa: E402

SOURCE = """// A step of the ring, equation (2).
// [step]
  int next(int rank) {
    // [inner]
    return rank + 1;
    // [/inner]
  }
// [/step]
"""
MATH = """```math
a = b \\tag{1}
```
```math
c = d \\tag{2}
```
A line that ends in a number gives no equation that number (3)
"""
PAGE = """# One page

## What a step does

<!-- code: reference/step.hpp#step -->
```cpp
int next(int rank) {
  return rank + 1;
}
```

<!-- output: answer 6 7 -->
```
42
```

The answer is <!-- value: answer 6 7 -->42<!-- /value -->, by math.md (1).
That is [the step](#what-a-step-does).
See [math](docs/math.md) and `reference/step.hpp`.
"""
ANSWER = "#!/bin/sh\necho $(($1 * $2))\n"


class WeaveCase(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name).resolve()
        for path, text in {"reference/step.hpp": SOURCE, "docs/math.md": MATH, "page.md": PAGE,
                           "bin/answer": ANSWER, "run": "./run help\n"}.items():
            (self.root / path).parent.mkdir(exist_ok=True)
            (self.root / path).write_text(text, encoding="utf-8")
        (self.root / "bin/answer").chmod(stat.S_IRWXU)

    def edit(self, path, old, new):
        text = (self.root / path).read_text(encoding="utf-8")
        self.assertEqual(text.count(old), 1, f"{old!r} in {path}")
        (self.root / path).write_text(text.replace(old, new), encoding="utf-8")

    def problems(self, fix=False):
        originals = weave.Originals(self.root, self.root / "bin")
        pages = ["page.md", "docs/math.md"]
        return [what for _, _, what in weave.weave(self.root, pages, originals, fix)]

    def expect(self, path, old, new, *words):
        """One edit of a true tree gives exactly one difference, which says these words."""
        self.edit(path, old, new)
        found = self.problems()
        self.assertEqual(len(found), 1, found)
        for word in words:
            self.assertIn(word, found[0])

    def test_a_true_page_passes(self):
        self.assertEqual(self.problems(), [])

    def test_a_changed_digit_in_an_output(self):
        self.expect("page.md", "```\n42", "```\n43", "differs from output")

    def test_a_changed_digit_in_the_prose(self):
        self.expect("page.md", "-->42<", "-->41<", "'41' is '42'")

    def test_a_changed_line_of_a_quoted_block(self):
        self.expect("page.md", "  return rank + 1;", "  return rank + 2;", "differs from code")

    def test_a_changed_line_of_the_code(self):
        self.expect("reference/step.hpp", "return rank + 1", "return rank - 1", "differs from code")

    def test_a_missing_region(self):
        self.expect("page.md", "#step", "#leap", "exactly one region [leap]")

    def test_a_region_without_end(self):
        self.expect("reference/step.hpp", "// [/step]\n", "", "exactly one region [step]")

    def test_a_program_that_fails(self):
        self.edit("bin/answer", "echo", "exit 2; echo")
        self.assertTrue(all("exited 2" in what for what in self.problems()))
        self.assertEqual(len(self.problems()), 2)

    def test_a_dead_link(self):
        self.expect("page.md", "(docs/math.md)", "(docs/maths.md)", "dead link docs/maths.md")

    def test_a_dead_anchor(self):
        self.expect("page.md", "(#what-a-step-does)", "(#what-a-leap-does)", "no anchor")

    def test_a_file_in_backticks_that_is_gone(self):
        self.expect("page.md", "`reference/step.hpp`", "`reference/leap.hpp`", "no file")

    def test_an_unknown_equation_cited_by_code(self):
        self.expect("reference/step.hpp", "equation (2)", "equation (3)", "cites (3)")

    def test_an_unknown_equation_cited_by_a_page(self):
        self.edit("page.md", "math.md (1)", "math.md (4)")
        (self.root / "page.md").rename(self.root / "docs/page.md")
        found = [what for _, _, what in weave.equations.check(self.root)]
        self.assertEqual(found, ["cites (4), but docs/math.md has no such equation"])

    def test_a_second_citation_right_behind_the_first(self):
        self.expect("reference/step.hpp", "equation (2)", "equations (2)(3)", "cites (3)")

    def test_an_unmarked_block(self):
        self.expect("page.md", "<!-- code: reference/step.hpp#step -->\n", "", "without directive")

    def test_a_directive_without_a_block(self):
        self.expect("page.md", "See [math]", "<!-- code: run -->\nSee [math]", "without a block")

    def test_directives_shown_in_a_block_are_no_directives(self):
        shown = "```text\n<!-- value: no-such -->1<!-- /value -->\n<!-- code: no/file -->\n```\n"
        self.edit("page.md", "See [math]", shown + "See [math]")
        self.assertEqual(self.problems(), [])

    def test_an_unknown_command(self):
        self.expect("page.md", "See [math]", "Type ./run away. See [math]", "no command away")

    def test_fix_restores_the_true_page(self):
        self.edit("page.md", "```\n42", "```\n43\n44")
        self.edit("page.md", "-->42<", "-->41<")
        self.edit("page.md", "  return rank + 1;", "  return rank + 2;")
        self.assertEqual(self.problems(fix=True), [])
        self.assertEqual((self.root / "page.md").read_text(encoding="utf-8"), PAGE)


if __name__ == "__main__":
    unittest.main()
