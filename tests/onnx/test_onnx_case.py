#!/usr/bin/env python3
"""Node tests of the ONNX operator Attention become cases under the operator's semantics.

    test_onnx_case.py RINGPROOF
"""

import json
import os
import pathlib
import random
import shutil
import struct
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


def field(number, value):
    """One field of a message: a whole number, a binary32 number, or bytes."""
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def varint(value):
    value &= (1 << 64) - 1
    groups = [value >> shift & 0x7F for shift in range(0, max(value.bit_length(), 1), 7)]
    return bytes([group | 0x80 for group in groups[:-1]] + groups[-1:])


def attribute(name, value, *more):
    number, kind = (2, 1) if isinstance(value, float) else (3, 2)
    return field(5, field(1, name) + field(number, value) + field(20, kind) + b"".join(more))


def model(*parts, opset=23, inputs=(b"Q", b"K", b"V"), domain=b""):
    """A model of one node: `parts` are its further fields."""
    node = b"".join(field(1, name) for name in inputs) + field(2, b"Y") + field(4, b"Attention")
    graph = field(1, node + b"".join(parts))
    graph += b"".join(field(11, field(1, name)) for name in inputs if name)
    graph += field(12, field(1, b"Y"))
    return field(7, graph) + field(8, field(1, domain) + field(2, opset))


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

    def refused(self, *parts, **options):
        """What the program says of the plain causal test with another model."""
        copy = self.copy(HERE / "data/test_attention_4d_causal")
        (copy / "model.onnx").write_bytes(model(*parts, **options))
        self.case.unlink(missing_ok=True)
        done = run("onnx-case", copy, "-o", self.case)
        self.assertEqual(done.returncode, 0 if self.case.exists() else 2, done.stderr)
        return done.stderr

    def test_only_what_the_operator_has_is_taken(self):
        causal = attribute(b"is_causal", 1)
        window = attribute(b"left_window_size", 2)
        self.assertEqual(self.refused(causal), "")
        self.assertEqual(self.refused(causal, field(7, b"ai.onnx"), domain=b"ai.onnx"), "")
        self.assertEqual(self.refused(attribute(b"scale", 0.5), window, opset=25), "")
        self.assertEqual(self.refused(attribute(b"softcap", 2.0), opset=24), "")
        for message, parts, options in (
                ('"is_casual" is none of Attention', [attribute(b"is_casual", 1)], {}),
                ('"is_causal" is 2, not from 0 to 1', [attribute(b"is_causal", 2)], {}),
                ('"is_causal" is -1, not from 0 to 1', [attribute(b"is_causal", -1)], {}),
                ('"is_causal" is no whole number', [attribute(b"is_causal", 1.0)], {}),
                ('"scale" is no binary32 number', [attribute(b"scale", 1)], {}),
                ('"scale" is no binary32 number',
                 [attribute(b"scale", 0.5, field(21, b"other"))], {}),
                ('"is_causal" stands there twice', [causal, causal], {}),
                ('"left_window_size" is none of Attention in opset 24', [window], {"opset": 24}),
                ('"left_window_size" is -2', [attribute(b"left_window_size", -2)], {"opset": 25}),
                ('"q_num_heads" is 0', [attribute(b"q_num_heads", 0)], {}),
                ('"qk_matmul_output_mode" is 4', [attribute(b"qk_matmul_output_mode", 4)], {}),
                ('"softmax_precision" is 7', [attribute(b"softmax_precision", 7)], {}),
                ("opset 22 is not from 23 to 25", [causal], {"opset": 22}),
                ("opset 26 is not from 23 to 25", [causal], {"opset": 26}),
                ("opset 0 is not from 23 to 25", [causal], {"domain": b"com.microsoft"}),
                ('the domain "com.microsoft"', [field(7, b"com.microsoft")], {}),
                ("too many inputs", [], {"inputs": [b"Q", b"K", b"V", b"", b"", b"", b"n"]})):
            with self.subTest(message):
                self.assertIn(message, self.refused(*parts, **options))

    def extracted(self, spec, name="Q"):
        """The same of the other form: a safetensors file with one tensor."""
        header = json.dumps({"__metadata__": {"ringproof": json.dumps({"kind": "onnx", **spec})},
                             name: {"dtype": "F32", "shape": [1, 1, 1, 1], "data_offsets": [0, 4]}})
        test = self.folder / "test.safetensors"
        test.write_bytes(struct.pack("<Q", len(header)) + header.encode() + bytes(4))
        done = run("onnx-case", test, "-o", self.case)
        self.assertEqual(done.returncode, 2, done.stderr)
        return done.stderr

    def test_the_extracted_form_is_held_to_the_same(self):
        for message, spec in (
                ("K is missing", {"opset": 23, "attributes": {"is_causal": 1, "scale": 0.5}}),
                ('"is_casual" is none of Attention', {"opset": 23, "attributes": {"is_casual": 1}}),
                ('"is_causal" is 2', {"opset": 23, "attributes": {"is_causal": 2}}),
                ('"is_causal" is no whole number', {"opset": 23, "attributes": {"is_causal": 1.5}}),
                ("opset 22 is not from 23 to 25", {"opset": 22, "attributes": {}}),
                ("no opset or no attributes", {"opset": "23", "attributes": {}}),
                ("no opset or no attributes", {"opset": 23, "attributes": []})):
            with self.subTest(message):
                self.assertIn(message, self.extracted(spec))
        plain = {"opset": 23, "attributes": {}}
        self.assertIn('tensor "q" is none of Attention', self.extracted(plain, "q"))
        self.assertIn('tensor "nonpad_kv_seqlen" is none of Attention in opset 23',
                      self.extracted(plain, "nonpad_kv_seqlen"))

    def test_nothing_is_written_over_the_test_or_over_what_is_no_file(self):
        copy = self.copy(HERE / "data/test_attention_4d_causal")
        pipe, elsewhere = self.folder / "pipe", self.folder / "elsewhere"
        os.mkfifo(pipe)
        shutil.move(copy / "test_data_set_0", elsewhere)
        for output, message in ((copy / "model.onnx", "is an input"), (copy / "new", "is an input"),
                                (elsewhere / "output_0.pb", "is an input"),
                                (pipe, "is not a regular file"),
                                (self.folder, "is not a regular file")):
            done = run("onnx-case", copy, "--data-set", elsewhere, "-o", output)
            self.assertEqual(done.returncode, 2, output)
            self.assertIn(message, done.stderr)
        done = run("onnx-case", copy, "--data-set", elsewhere, "-o", self.case)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_other_things_are_bad_input(self):
        for words in (["/no/such"], [HERE], [HERE / "README.md"],
                      [TESTS[0], "--data-set", "test_data_set_9"]):
            done = run("onnx-case", *words, "-o", self.case)
            self.assertEqual(done.returncode, 2, words)
            self.assertFalse(self.case.exists())


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
