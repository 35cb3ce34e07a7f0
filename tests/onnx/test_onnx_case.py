#!/usr/bin/env python3
"""Node tests of the ONNX operator Attention become cases under the operator's semantics.

    test_onnx_case.py RINGPROOF
"""

import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
TESTS = sorted(path for path in (HERE / "data").iterdir() if path.is_dir())
SHARED = pathlib.Path(os.environ.get("RINGPROOF_SHARED", HERE.parents[2] / "shared"))
CONTRACTS = {"F32": "fp32", "F16": "fp16-eager", "BF16": "bf16-unfused"}
PROGRAM = ""


def run(*words):
    return subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, check=False,
                          errors="replace")


def header_of(path):
    data = path.read_bytes()
    return json.loads(data[8:8 + int.from_bytes(data[:8], "little")])


class OnnxCase(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.case = self.folder / "case.safetensors"

    def made(self, test):
        done = run("onnx-case", test, "-o", self.case)
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
        return header_of(self.case)

    def check(self, *more):
        contract = CONTRACTS[header_of(self.case)["q"]["dtype"]]
        return run("check", self.case, "--contract", contract, *more)

    def copy(self, test):
        copy = self.folder / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(test, copy)
        return copy

    def test_every_shipped_node_test_passes(self):
        self.assertEqual(len(TESTS), 8)
        for test in TESTS:
            with self.subTest(test.name):
                self.made(test)
                done = self.check()
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                self.assertIn("PASS", done.stdout)

    def test_every_extracted_node_test_passes(self):
        extracted = sorted((SHARED / "data/onnx/open").glob("*.safetensors"))
        if not extracted:
            print("skipped: no extracted node tests beside the repository")
            self.skipTest("no extracted node tests")
        for test in extracted:
            with self.subTest(test.name):
                self.made(test)
                self.assertEqual(self.check().returncode, 0)

    def test_each_term_of_the_spec_is_needed(self):
        seen = set()
        for test in TESTS:
            spec = json.loads(self.made(test)["__metadata__"]["ringproof"])
            for term in {"causal", "window", "softcap"} & spec.keys():
                other = self.folder / "spec.json"
                other.write_text(json.dumps({k: v for k, v in spec.items() if k != term}),
                                 encoding="utf-8")
                seen.add((term, self.check("--spec", other).returncode))
        # A causal mask hides what a window to the right would; alone each of them is seen.
        self.assertLessEqual({("causal", 1), ("window", 1), ("softcap", 1)}, seen)

    def test_tensors_are_where_the_mapping_says(self):
        def shapes(name):
            header = self.made(HERE / "data" / f"test_attention_{name}")
            return {k: v["shape"] for k, v in header.items() if k != "__metadata__"}

        past = shapes("3d_gqa_with_past_and_present")
        self.assertEqual((past["q"], past["k"]), ([2, 9, 4, 8], [2, 3, 18, 8]))
        self.assertEqual(past["bias"], [4, 18])
        self.assertNotIn("positions_q", past)  # nothing asks for them
        lengths = shapes("4d_causal_nonpad_batch_prefill")
        self.assertEqual((lengths["key_lengths"], lengths["positions_q"]), ([3], [3, 2]))
        self.assertIn("mask", shapes("4d_attn_mask_bool"))
        self.assertIn("positions_q", shapes("4d_causal_with_past_and_present"))

    def test_a_wrong_answer_is_refused(self):
        copy = self.copy(HERE / "data/test_attention_4d_causal")
        answer = copy / "test_data_set_0/output_0.pb"
        data = bytearray(answer.read_bytes())
        data[-1] ^= 0x80  # the sign of the last number
        answer.write_bytes(data)
        self.made(copy)
        done = self.check()
        self.assertEqual(done.returncode, 1)
        self.assertIn("1 refused", done.stdout)

    def test_a_present_that_is_not_past_and_new_rows_is_told(self):
        copy = self.copy(HERE / "data/test_attention_4d_causal_with_past_and_present")
        present = copy / "test_data_set_0/output_1.pb"
        data = bytearray(present.read_bytes())
        data[-1] ^= 1
        present.write_bytes(data)
        done = run("onnx-case", copy, "-o", self.case)
        self.assertEqual(done.returncode, 1)
        self.assertIn("present_key is not the past and the new rows", done.stdout)

    def test_spoilt_files_are_refused_and_never_crash(self):
        draw = random.Random(3)
        source = HERE / "data/test_attention_3d_gqa_with_past_and_present"
        for turn in range(120):
            copy = self.copy(source)
            victim = draw.choice(sorted(copy.rglob("*.*")))
            if victim.is_dir():
                continue
            data = bytearray(victim.read_bytes())
            if turn % 2:
                del data[draw.randrange(len(data)):]
            else:
                data[draw.randrange(min(len(data), 64))] = draw.randrange(256)
            victim.write_bytes(data)
            self.case.unlink(missing_ok=True)
            done = run("onnx-case", copy, "-o", self.case)
            self.assertIn(done.returncode, (0, 1, 2), victim)
            if done.returncode == 2:
                self.assertTrue(done.stderr.startswith("ringproof: "), done.stderr)
                self.assertFalse(self.case.exists())

    def test_sizes_that_are_only_claimed_are_refused_at_once(self):
        copy = self.copy(HERE / "data/test_attention_4d_causal")
        query = copy / "test_data_set_0/input_0.pb"
        # dims 2^40, 1, 1, 0 and the type FLOAT, without a number
        query.write_bytes(bytes([8, 128, 128, 128, 128, 128, 32, 8, 1, 8, 1, 8, 0, 16, 1]))
        done = run("onnx-case", copy, "-o", self.case)
        self.assertEqual(done.returncode, 2)
        self.assertIn("the shape does not match", done.stderr)

    def test_parts_that_do_not_fit_together_are_refused(self):
        copy = self.copy(HERE / "data/test_attention_4d_causal")
        data = copy / "test_data_set_0"
        shutil.copy(data / "input_0.pb", data / "input_1.pb")  # K like Q, V with other rows
        done = run("onnx-case", copy, "-o", self.case)
        self.assertEqual(done.returncode, 2, done.stdout)
        self.assertFalse(self.case.exists())

    def test_other_things_are_bad_input(self):
        for words in (["/no/such"], [HERE], [HERE / "README.md"],
                      [TESTS[0], "--data-set", "test_data_set_9"]):
            done = run("onnx-case", *words, "-o", self.case)
            self.assertEqual(done.returncode, 2, words)
            self.assertFalse(self.case.exists())


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
