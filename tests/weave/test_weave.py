"""The weave check catches what it is there for: a true page passes, each planted drift does not."""

import json
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
DRAW = "#!/bin/sh\necho '<svg>'\necho '</svg>'\n"
LESSON = """# A lesson

<!-- output: answer 21 20 -->
```
420
```

By (2) there are 420 pairs.

<!-- figure: draw -->
![A square](square.svg)
"""


class WeaveCase(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name).resolve()
        for path, text in {"reference/step.hpp": SOURCE, "docs/math.md": MATH, "page.md": PAGE,
                           "tutorials/lesson.md": LESSON, "tutorials/square.svg": "<svg>\n</svg>\n",
                           "tutorials/lesson.cpp": "// (1)\n", "bin/draw": DRAW,
                           "bin/answer": ANSWER, "run": "./run help\n"}.items():
            (self.root / path).parent.mkdir(exist_ok=True)
            (self.root / path).write_text(text, encoding="utf-8")
        for program in ("answer", "draw"):
            (self.root / "bin" / program).chmod(stat.S_IRWXU)

    def edit(self, path, old, new):
        text = (self.root / path).read_text(encoding="utf-8")
        self.assertEqual(text.count(old), 1, f"{old!r} in {path}")
        (self.root / path).write_text(text.replace(old, new), encoding="utf-8")

    def problems(self, fix=False):
        originals = weave.Originals(self.root, self.root / "bin")
        pages = ["page.md", "docs/math.md", "tutorials/lesson.md"]
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
        self.assertEqual(len(self.problems()), 3)

    def test_a_dead_link(self):
        self.expect("page.md", "(docs/math.md)", "(docs/maths.md)", "dead link docs/maths.md")

    def test_a_page_to_which_no_page_leads(self):
        for path, text in {"README.md": "# One\n[all](docs/README.md), `docs/math.md`\n",
                           "docs/README.md": "# All\n[a](a.md)\n", "docs/a.md": "# A\n",
                           "docs/lost.md": "# Lost\n"}.items():
            (self.root / path).write_text(text, encoding="utf-8")
        pages = ["README.md", "docs/README.md", "docs/math.md", "docs/a.md", "docs/lost.md"]
        self.assertEqual([page for page, *_ in weave.links.dead_ends(self.root, pages)],
                         ["docs/lost.md"])

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

    def test_an_unknown_equation_cited_by_a_tutorial(self):
        self.expect("tutorials/lesson.md", "By (2)", "By (3)", "cites (3)")

    def test_an_unknown_equation_cited_by_the_program_of_a_tutorial(self):
        self.expect("tutorials/lesson.cpp", "(1)", "(7)", "cites (7)")

    def test_an_equation_of_a_page_named_behind_it(self):
        self.edit("docs/math.md", "(3)", "")
        self.edit("tutorials/lesson.md", "By (2)", "By (1) and (9) of [math.md](../docs/math.md)")
        self.assertEqual(self.problems(), ["cites (9), but docs/math.md has no such equation"])

    def test_a_changed_figure(self):
        self.expect("tutorials/square.svg", "<svg>", "<svg >", "square.svg differs from figure")

    def test_a_missing_figure(self):
        (self.root / "tutorials/square.svg").unlink()
        self.assertEqual(len(self.problems()), 2)  # the link is dead as well

    def test_a_figure_without_a_description(self):
        self.expect("tutorials/lesson.md", "![A square]", "![]", "without an image")

    def test_a_program_that_draws_otherwise(self):
        self.expect("bin/draw", "</svg>", "<g/></svg>", "differs from figure")

    def test_a_changed_digit_in_a_sentence_of_a_tutorial(self):
        self.expect("tutorials/lesson.md", "are 420 pairs", "are 421 pairs", "no woven block")

    def test_a_result_that_no_program_of_the_tutorial_prints(self):
        self.expect("tutorials/lesson.md", "are 420 pairs", "are 420 pairs, 0.5 each", "0.5 stands")

    def number_of_a_page(self, sentence, constants):
        """What is said of a sentence in docs/, with these constants."""
        text = (self.root / "docs/math.md").read_text(encoding="utf-8")
        (self.root / "docs/math.md").write_text(text + sentence + "\n", encoding="utf-8")
        (self.root / "tests/weave").mkdir(parents=True)
        (self.root / "tests/weave/numbers.json").write_text(
            json.dumps({"docs/math.md": {"reference/step.hpp": constants}}), encoding="utf-8")
        return self.problems()

    def test_a_number_of_a_page_that_nothing_holds(self):
        self.assertEqual(self.number_of_a_page("There are 420 pairs.", {}),
                         ["420 stands in no woven block of the page, and is no constant of "
                          "tests/weave/numbers.json"])

    def test_a_constant_of_the_code(self):
        self.edit("reference/step.hpp", "rank + 1", "rank + 420")
        self.edit("page.md", "rank + 1", "rank + 420")
        self.assertEqual(self.number_of_a_page("A step is 420 seats.", {"420": "rank + 420"}), [])

    def test_a_constant_that_the_code_has_no_longer(self):
        self.assertEqual(self.number_of_a_page("A step is 420 seats.", {"420": "rank + 420"}),
                         ["420: rank + 420 is not in reference/step.hpp"])

    def test_a_constant_that_no_sentence_has(self):
        self.assertEqual(self.number_of_a_page("A step is one seat.", {"420": "rank + 1"}),
                         ["tests/weave/numbers.json excuses 420, which no sentence has"])

    def test_lines_of_the_document_are_no_results(self):
        self.edit("tutorials/lesson.md", "are 420 pairs", "are 420 pairs (lines 101 and 116)")
        self.assertEqual(self.problems(), [])

    def test_fix_draws_the_figure_anew(self):
        self.edit("tutorials/square.svg", "<svg>", "<svg >")
        self.problems(fix=True)
        self.assertEqual(self.problems(), [])

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
