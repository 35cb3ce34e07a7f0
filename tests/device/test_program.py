#!/usr/bin/env python3
"""ringproof-cuda from outside: what it refuses leaves exit status 2, one sentence and no file;
rings of every layout, both ways round, give answers and gradients that the judge passes.

    RINGPROOF_PROGRAMS=build/bin test_program.py
"""

import os
import pathlib
import subprocess
import tempfile
import unittest

import cases

PROGRAMS = pathlib.Path(os.environ["RINGPROOF_PROGRAMS"])


def run(program, *arguments):
    command = [PROGRAMS / program, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True)


class Program(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.out = pathlib.Path(self.folder.name) / "out.safetensors"

    def case(self, dtype="BF16", heads=2, rows=33, width=32, **more):
        path = pathlib.Path(self.folder.name) / "case.safetensors"
        cases.write(path, *cases.problem(dtype, heads, 1, rows, rows, width, 5, **more))
        return path

    def refused(self, word, path, *arguments):
        done = run("ringproof-cuda", path, "-o", self.out, *arguments)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn(word, done.stdout + done.stderr)
        self.assertFalse(self.out.exists())

    def test_what_the_tier_does_not_take_is_refused_by_name(self):
        self.refused("no such kernel", self.case(), "--kernel", "07")
        self.refused("does not take this case's type", self.case("F32"), "--kernel", "05")
        self.refused("wider than 128", self.case(width=130))
        self.refused("more than 65535 heads", self.case(heads=65536, rows=1, width=1))
        self.refused("dout", self.case(), "--backward")
        self.refused("one 16-bit type", self.case("F32", dout=True), "--backward")
        self.refused("no backward pass", self.case(dout=True), "--backward", "--kernel", "04")

    def test_numbers_out_of_range_and_files_that_are_none_are_refused(self):
        self.refused("--ranks", self.case(), "--ranks", "0")
        self.refused("--ranks", self.case(), "--ranks", "257")
        self.refused("spiral", self.case(), "--layout", "spiral")
        self.refused("No such file", self.case().with_name("none.safetensors"))
        cut = self.case()
        cut.write_bytes(cut.read_bytes()[:100])
        self.refused("cut short", cut)

    def test_rings_of_every_layout_pass_forward_and_backward(self):
        path = self.case(spec={"causal": "bottom_right"}, dout=True)
        for layout in ("contiguous", "zigzag", "striped"):
            for order in ("down", "up"):
                done = run("ringproof-cuda", path, "-o", self.out, "--ranks", 3, "--layout", layout,
                           "--order", order, "--backward", "--kernel", "05")
                self.assertEqual(done.returncode, 0, done.stderr)
                checked = run("ringproof", "check", self.out)
                self.assertEqual(checked.returncode, 0, checked.stdout)
                for answer in ("out", "lse", "dq", "dk", "dv"):
                    self.assertRegex(checked.stdout, rf"(?m)^ *{answer} +PASS")


if __name__ == "__main__":
    unittest.main()
