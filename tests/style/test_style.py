"""The style test catches what it is there for: each rule against a small tree with one fault."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import cpp_text  # noqa: E402
import style  # noqa: E402

CLEAN = "// The sum of two numbers, and nothing else.\n#pragma once\n\n#include <vector>\n"


class TreeCase(unittest.TestCase):
    def tree(self, files, readmes=True):
        """The root of a throw-away repository with these files."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        root = pathlib.Path(folder.name)
        subprocess.run(["git", "init", "-q", root], check=True)
        for path, text in files.items():
            target = root / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
            for parent in target.relative_to(root).parents:
                if readmes and str(parent) != ".":
                    (root / parent / "README.md").touch()
        return root

    def found(self, files, readmes=True):
        """The violations in such a repository, as (path, rule)."""
        root = self.tree(files, readmes)
        return [(path, rule) for path, _, rule, _ in style.violations(root)]

    def expect(self, path, text, *rules):
        self.assertEqual([rule for where, rule in self.found({path: text}) if where == path],
                         list(rules))


class Rules(TreeCase):
    def test_a_clean_file_passes(self):
        self.expect("reference/sum.hpp", CLEAN)

    def test_length_and_columns(self):
        self.expect("reference/sum.hpp", CLEAN + "\n" * 400, "length")
        self.expect("reference/sum.hpp", CLEAN + "// " + "x" * 98 + "\n", "columns")
        self.expect("reference/sum.hpp", CLEAN + "int a; \n", "space")

    def test_markers_and_words(self):
        self.expect("reference/sum.hpp", CLEAN + "// TODO faster\n", "marker")
        self.expect("docs/a.md", "Found in a session.\n", "word")
        self.expect("docs/a.md", "See /tmp/x for the log.\n", "word")
        self.expect("docs/a.md", "Obsession, agenda and AIX are other words.\n")

    def test_first_comment_and_pragma(self):
        self.expect("reference/sum.hpp", "#pragma once\n// late\n", "first-comment")
        self.expect("reference/sum.hpp", "// A header.\nint a;\n", "pragma")
        self.expect("reference/sum-inl.hpp", "// Included once for each target.\nint a;\n")
        files = {"oracle/case/a.hpp": CLEAN, "oracle/case/a.cpp": '#include "oracle/case/a.hpp"\n'}
        self.assertEqual(self.found(files), [])
        self.expect("tests/a.py", "#!/usr/bin/env python3\nimport os\n", "first-comment")

    def test_function_length(self):
        body = "int f(int a) {\n" + "  ++a;\n" * 68 + "  return a;\n}\n"
        self.expect("tests/a.cpp", "// A.\n" + body, "function")
        self.expect("tests/a.cpp", "// A.\n" + body.replace("  ++a;\n", "", 1))
        self.expect("tests/a.cpp", "// A.\nnamespace a {\n" + "int b;\n" * 90 + "}\n")

    def test_include_direction(self):
        for path, header in [("reference/sum.hpp", "<fmt/core.h>"),
                             ("reference/sum.hpp", '"oracle/case/case.hpp"'),
                             ("oracle/truth/a.hpp", '"reference/ring.hpp"'),
                             ("oracle/truth/a.hpp", "<CLI/CLI.hpp>"),
                             ("oracle/truth/a.hpp", '"oracle/judge/judge.hpp"'),
                             ("oracle/case/a.hpp", '"oracle/cli/main.hpp"')]:
            target = header.strip('<">')
            found = self.found({target: CLEAN, path: CLEAN + f"#include {header}\n"})
            self.assertIn((path, "include"), found, f"{path} includes {header}")
        self.expect("reference/sum.hpp", CLEAN + '#include "sum_detail.hpp"\n', "include")
        user = CLEAN + '#include "oracle/case/case.hpp"\n'
        files = {"oracle/judge/a.hpp": user, "oracle/case/case.hpp": CLEAN}
        self.assertEqual(self.found(files), [])

    def test_tolerance(self):
        for line in ["CHECK(error < 1e-6);", "CHECK(1e-6 > error);", "CHECK(a == Approx(b));",
                     "if (error <= 0.001) return;", "CHECK(x / y < 2.5e-3 * z);"]:
            self.expect("tests/a.cpp", f"// A.\n{line}\n", "tolerance")
        for line in ["std::vector<double> x{1e-6};", "CHECK(ratio <= 1.0);", "CHECK(p < 0.1);",
                     "CHECK(error < bound);  // not 1e-6",
                     'CHECK(text < "1e-6 < x");', "CHECK(count < 2);"]:
            self.expect("tests/a.cpp", f"// A.\n{line}\n")
        self.expect("oracle/contract/a.cpp", "// A.\nif (error < 1e-6) return;\n")

    def test_without_git_every_file_counts(self):
        root = self.tree({"docs/a.md": "See /tmp/x.\n", "build/b.md": "See /tmp/x.\n"})
        (root / ".git").rename(root / "no-git")
        self.assertEqual([p for p, _, rule, _ in style.violations(root) if rule == "word"],
                         ["docs/a.md"])

    def test_folder_without_readme(self):
        found = self.found({"oracle/case/a.hpp": CLEAN, "docs/README.md": ""}, readmes=False)
        self.assertEqual(found, [("oracle", "readme"), ("oracle/case", "readme")])


class Excuses(TreeCase):
    def test_an_excuse_covers_its_line_and_must_be_needed(self):
        root = self.tree({"tests/a.cpp": "// A.\nCHECK(error < 1e-6);\n"})
        found = list(style.violations(root))
        right = {"path": "tests/*.cpp", "rule": "tolerance", "contains": "error", "reason": "r"}
        self.assertEqual(list(style.excused(found, [right], root)), [])
        left = list(style.excused(found, [dict(right, contains="other")], root))
        self.assertEqual([rule for _, _, rule, _ in left], ["tolerance", "excuse"])


class CppText(unittest.TestCase):
    def test_comments_and_literals_are_told_apart(self):
        code, comments = cpp_text.split(
            'int a = 1\'000; // "x"\nf("// no", \'"\'); /* two\nlines */ g();\n')
        self.assertEqual(code, ["int a = 1'000; ", "f(\"\", ''); ", " g();", ""])
        self.assertEqual(comments, [' "x"', " two", "lines ", ""])

    def test_raw_strings_keep_the_line_count(self):
        code, _ = cpp_text.split('f(R"(a "quoted"\nline // x)");\nint b;\n')
        self.assertEqual(code, ['f(""', ");", "int b;", ""])


if __name__ == "__main__":
    unittest.main()
