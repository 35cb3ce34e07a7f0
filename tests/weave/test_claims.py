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
        self.assertIn("a ring of \\| one ([a.cpp](../tests/a.cpp))", claims.page(CLAIMS, found, {}))

    def test_a_claim_without_a_test_is_a_problem_unless_it_waits(self):
        self.assertEqual(len(list(claims.problems(CLAIMS, {}))), 1)
        self.assertEqual(list(claims.problems(CLAIMS, self.found('TEST_CASE("C1: x") {}'))), [])

    def test_a_test_of_an_unknown_claim_is_a_problem(self):
        found = self.found('TEST_CASE("C1: x") {}\nTEST_CASE("C9: y") {}')
        self.assertEqual(list(claims.problems(CLAIMS, found)),
                         ["tests/a.cpp shows C9, which tests/claims.json does not have"])


if __name__ == "__main__":
    unittest.main()
