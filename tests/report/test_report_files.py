#!/usr/bin/env python3
"""The files of `ringproof check --report` are what other programs expect.

    test_report_files.py RINGPROOF
"""

import copy
import html.parser
import importlib.util
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import cases  # noqa: E402
import small_schema  # noqa: E402

SCHEMA = json.loads((pathlib.Path(__file__).resolve().parents[2] / "docs/report.schema.json")
                    .read_text(encoding="utf-8"))
PROGRAM = ""


def needs(module):
    if importlib.util.find_spec(module) is None:
        print(f"skipped: the part that needs the Python package {module}", flush=True)
        raise unittest.SkipTest(module)
    return importlib.import_module(module)


class Tags(html.parser.HTMLParser):
    """Elements that are closed in the order in which they were opened, and every attribute."""

    VOID = {"meta", "link"}

    def __init__(self):
        super().__init__()
        self.open, self.attributes, self.names, self.text = [], [], set(), ""

    def handle_starttag(self, tag, attrs):
        self.names.add(tag)
        self.attributes += attrs
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.names.add(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, (tag, self.open)
        self.open.pop()

    def handle_data(self, data):
        self.text += data


class ReportFiles(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        folder = pathlib.Path(cls.folder.name)
        cls.paths = cases.write_all(folder)
        cls.written = {form: folder / f"report.{form}" for form in ("json", "junit", "html")}
        cls.code = cls.check(cls.written)
        cls.json = json.loads(cls.written["json"].read_text(encoding="utf-8"))

    @classmethod
    def check(cls, files, *more):
        words = ",".join(f"{form}={path}" for form, path in files.items())
        return subprocess.run([PROGRAM, "check", *map(str, cls.paths.values()), "--report", words,
                               *more], capture_output=True, check=False).returncode

    def of(self, verdict):
        return next(case for case in self.json["cases"] if case["verdict"] == verdict)

    def test_every_verdict_is_there_and_the_exit_status_is_the_worst(self):
        self.assertEqual(self.code, 2)
        self.assertEqual(self.json["exit_status"], 2)
        self.assertEqual([case["verdict"] for case in self.json["cases"]], list(self.paths))

    def test_json_is_what_the_schema_says(self):
        self.assertEqual(list(small_schema.problems(self.json, SCHEMA, SCHEMA)), [])

    def test_json_is_what_the_schema_says_to_jsonschema(self):
        jsonschema = needs("jsonschema")
        jsonschema.Draft202012Validator.check_schema(SCHEMA)
        jsonschema.Draft202012Validator(SCHEMA).validate(self.json)

    def test_the_schema_refuses_what_is_no_report(self):
        def spoilt(change):
            report = copy.deepcopy(self.json)
            change(report)
            return list(small_schema.problems(report, SCHEMA, SCHEMA))

        wrong = self.json["cases"].index(self.of("FAIL"))
        self.assertTrue(spoilt(lambda r: r.pop("verdict")))
        self.assertTrue(spoilt(lambda r: r.update(verdict="GOOD")))
        self.assertTrue(spoilt(lambda r: r["cases"][wrong].pop("contract")))
        def out(report):
            return report["cases"][wrong]["answers"][0]

        self.assertTrue(spoilt(lambda r: out(r)["worst"].update(exact="1")))
        self.assertTrue(spoilt(lambda r: out(r).update(refused=-1)))

    def test_json_names_the_mistake(self):
        classes = [one["id"] for one in self.of("FAIL")["explanation"]["classes"]]
        self.assertIn("MASK-OFF1", classes)
        self.assertNotIn("explanation", self.of("PASS"))

    def junit(self):
        return xml.etree.ElementTree.parse(self.written["junit"]).getroot()

    def test_junit_counts_what_it_holds(self):
        suite = self.junit().find("testsuite")
        self.assertEqual([suite.get(n) for n in ("tests", "failures", "errors", "skipped")],
                         ["4", "1", "1", "1"])
        for element, count in (("testcase", 4), ("failure", 1), ("error", 1), ("skipped", 1)):
            self.assertEqual(len(list(suite.iter(element))), count)
        failure = next(suite.iter("failure"))
        self.assertIn("explained by MASK-OFF1", failure.text)
        self.assertIn("repeat    ringproof check", failure.text)
        names = [case.get("name") for case in suite.iter("testcase")]
        self.assertEqual(names, [str(path) for path in self.paths.values()])

    def test_junit_is_read_by_junitparser(self):
        junitparser = needs("junitparser")
        read = junitparser.JUnitXml.fromfile(str(self.written["junit"]))
        self.assertEqual((read.tests, read.failures, read.errors, read.skipped), (4, 1, 1, 1))
        kinds = [type(result).__name__ for suite in read for case in suite
                 for result in case.result]
        self.assertEqual(sorted(kinds), ["Error", "Failure", "Skipped"])

    def test_the_page_is_one_file_of_sound_markup_without_scripts(self):
        text = self.written["html"].read_text(encoding="utf-8")
        tags = Tags()
        tags.feed(text)
        tags.close()
        self.assertEqual(tags.open, [])
        self.assertFalse(tags.names & {"script", "iframe", "img", "object", "wrong"})
        for name, value in tags.attributes:
            self.assertFalse(name.startswith("on"), name)
            if name in ("src", "href"):
                self.assertRegex(value, r"^(#case-\d+|data:,)$")
        self.assertNotRegex(text, r"https?://|@import|url\(")
        identifiers = re.findall(r'id="([^"]+)"', text)
        self.assertEqual(len(identifiers), len(set(identifiers)))

    def test_the_page_says_what_the_other_forms_say(self):
        tags = Tags()
        tags.feed(self.written["html"].read_text(encoding="utf-8"))
        for case in self.json["cases"]:
            self.assertIn(case["case"], tags.text)
            for said in (case.get("repeat"), case.get("error")):
                self.assertIn(said or "", tags.text)
        for words in ("MASK-OFF1", "refuses gain errors from", "fp32 (52648d2fd019)"):
            self.assertIn(words, tags.text)
        self.assertEqual(self.written["html"].read_text(encoding="utf-8").count("<figure"), 4)

    def test_the_same_judgement_gives_the_same_files(self):
        again = {form: path.with_suffix(".again") for form, path in self.written.items()}
        for form, path in again.items():
            self.check({form: path}, "--threads", "3")
            self.assertEqual(path.read_bytes(), self.written[form].read_bytes(), form)

    def test_two_reports_never_share_a_file(self):
        one = self.written["json"].with_name("one")
        self.assertEqual(self.check({"json": one, "html": one}), 2)
        self.assertFalse(one.exists())


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
