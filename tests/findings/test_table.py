#!/usr/bin/env python3
"""table.py: a page that says something else than its record is noticed, and written anew."""

import contextlib
import json
import pathlib
import tempfile
import unittest

import table

RUN = {"dtype": "float32", "contract": "fp32-simd", "declared": True, "suite": "full", "cases": 3,
       "passed": {"out": 3, "dk": 1}, "declined": {}, "other": [["c", "UNDECIDED", ["dk"]]],
       "refused": [{"answers": ["dk"], "explanations": ["DKV-SWAP", "DKV-SWAP"], "cases": 1,
                    "smallest": "plain.full", "fit": None}]}
RECORD = {"implementations": [{"name": "attention", "package": "package", "version": "1.2",
                               "source": "a.py", "arithmetic": "binary32", "runs": [RUN]}]}


class Page(unittest.TestCase):
    def setUp(self):
        with contextlib.ExitStack() as stack:
            folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
            self.addCleanup(stack.pop_all().close)
        self.page, self.record = folder / "page.md", folder / "record.json"
        self.record.write_text(json.dumps(RECORD))
        parts = "\n".join(f"<!-- findings: {part} -->\n<!-- /findings -->" for part in table.PARTS)
        self.page.write_text(f"# Page\n{parts}\nend\n")
        self.assertEqual(table.main(self.page, self.record, "--write"), 0)

    def test_what_was_written_agrees_and_text_around_it_stays(self):
        self.assertEqual(table.main(self.page, self.record), 0)
        text = self.page.read_text()
        self.assertTrue(text.startswith("# Page\n") and text.endswith("\nend\n"))
        self.assertIn("| full | 3/3 |  |  | 1/3 |  | 1 |", text)
        self.assertIn("| dk | 1 | `plain.full` | DKV-SWAP | no contract |", text)

    def test_fields_of_fields_are_named_by_their_path(self):
        ring = {"count": {"keys": 16}, "acc_u": "0x1p-8"}
        contract = {"base": "fp32", "backward": {"ring": ring}}
        self.assertEqual(table.contract_words(contract),
                         "`fp32`, backward.ring.count.keys 16, backward.ring.acc_u 2^-8")

    def test_a_changed_verdict_is_noticed(self):
        self.page.write_text(self.page.read_text().replace("1/3", "3/3"))
        self.assertIn("run findings", table.main(self.page, self.record))

    def test_a_missing_part_is_noticed(self):
        self.page.write_text(self.page.read_text().replace("findings: refused", "findings: judged"))
        self.assertIn("not every part", table.main(self.page, self.record))


if __name__ == "__main__":
    unittest.main()
