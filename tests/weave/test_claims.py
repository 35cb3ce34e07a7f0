"""The claims table catches what it is there for."""

import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import claims  # noqa: E402

CLAIMS = [{"id": "C1", "claim": "One."}, {"id": "C2", "claim": "Two.", "waits_for": "mpi/"}]


class Claims(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        (self.root / "tests").mkdir()

    def found(self, text):
        (self.root / "tests/a.cpp").write_text(text, encoding="utf-8")
        return claims.tests_by_claim(self.root)

    def test_names_are_found_also_when_split(self):
        found = self.found('TEST_CASE("C1: a ring "\n          "of | one") {}\n'
                           'property("C2 and C1: two", [] {});\nTEST_CASE("no claim C7") {}\n')
        self.assertEqual(found, {"C1": [("tests/a.cpp", "a ring of | one"), ("tests/a.cpp", "two")],
                                 "C2": [("tests/a.cpp", "two")]})
        page = claims.page(CLAIMS, found, {}, {}, False)
        self.assertIn("a ring of \\| one ([a.cpp](../tests/a.cpp))", page)

    def test_a_claim_without_a_test_is_a_problem_unless_it_waits(self):
        self.assertEqual(len(list(claims.problems(CLAIMS, {}, {}))), 1)
        self.assertEqual(list(claims.problems(CLAIMS, self.found('TEST_CASE("C1: x") {}'), {})), [])

    def test_a_test_of_an_unknown_claim_is_a_problem(self):
        found = self.found('TEST_CASE("C1: x") {}\nTEST_CASE("C9: y") {}')
        self.assertEqual(list(claims.problems(CLAIMS, found, {})),
                         ["tests/a.cpp shows C9, which tests/claims.json does not have"])

    def test_results_are_read_file_by_file_and_a_failure_is_a_problem(self):
        found = self.found('TEST_CASE("C1: x") {}')
        (self.root / "a.txt").write_text(f"passed\t{self.root}/tests/a.cpp\tC1: x\n"
                                         f"failed\t{self.root}/tests/a.cpp\tsomething else\n",
                                         encoding="utf-8")
        results = claims.results_by_file(self.root, self.root)
        self.assertEqual(results, {"tests/a.cpp": False})
        self.assertIn("| 0 of 1 passed |", claims.page(CLAIMS, found, {}, results, True))
        self.assertEqual(list(claims.problems(CLAIMS, found, results)),
                         ["C1: a test of tests/a.cpp failed when it was last run"])

    def test_what_was_not_run_counts_as_passed_only_where_that_is_assumed(self):
        found = self.found('TEST_CASE("C1: x") {}')
        self.assertIn("| 1 of 1 passed |", claims.page(CLAIMS, found, {}, {}, True))
        self.assertIn("| 0 of 1 passed |", claims.page(CLAIMS, found, {}, {}, False))


if __name__ == "__main__":
    unittest.main()
