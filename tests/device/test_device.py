#!/usr/bin/env python3
"""What tests/device.sh does with other libraries and with times, where neither is at hand:
libraries that answer, that refuse, that come too late; the share of another library's speed."""

import json
import pathlib
import tempfile
import types
import unittest

import device
import harvest


class Library:
    """A library with two kernels, of which one cannot."""

    device = "cpu"

    def __init__(self, _):
        def broken(*_):
            raise RuntimeError("this head is too wide\nand more")
        self.kernels = {"good": harvest.Implementation(lambda q, *_: q, None, "bf16-flash"),
                        "bad": harvest.Implementation(broken, None, "bf16-flash")}

    def tensor(self, _, numbers):
        return numbers

    def gradients(self, call, inputs, dout):
        raise NotImplementedError("no gradients")

    def numbers(self, tensor):
        return tensor


class Logic(unittest.TestCase):
    def harvest(self, seconds):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            judge = folder / "ringproof"
            judge.write_text("#!/bin/sh\nexit 3\n")
            judge.chmod(0o755)
            found = harvest.Harvest(types.SimpleNamespace(programs=folder, out=folder,
                                                          seconds=seconds))
            libraries = harvest.Torch, harvest.Jax
            harvest.Torch = harvest.Jax = Library
            self.addCleanup(lambda: [setattr(harvest, x.__name__, x) for x in libraries])
            found.run()
            found.write()
            return json.loads((folder / "harvest.json").read_text())

    def test_answers_are_judged_and_refusals_named(self):
        found = self.harvest(60)
        self.assertEqual([(peer["name"], peer["verdict"], peer["answers"])
                          for peer in found["peers"]], [("good", "UNDECIDED", ["out"])] * 2)
        self.assertIn("bad: this head is too wide", found["skipped"])
        self.assertIn("good, gradients: no gradients", found["skipped"])

    def test_what_comes_too_late_is_named(self):
        found = self.harvest(-1)
        self.assertEqual(found["peers"], [])
        self.assertEqual(len(found["skipped"]), 2)
        self.assertTrue(all(line.endswith("no time") for line in found["skipped"]))

    def test_a_step_is_compared_with_flash_on_the_same_shape(self):
        times = device.table_of("step width queries causal milliseconds teraflops\n"
                                "06 64 4096 causal 0.400 90.0\n06 128 4096 full 1.000 90.0\n")
        peers = [{"name": name, "times": [{"width": 64, "queries": 4096, "causal": "causal",
                                           "milliseconds": time}]}
                 for name, time in (("torch sdpa math", 3.0), ("torch sdpa flash", 0.3))]
        device.ratios(times, peers)
        self.assertEqual(times[0]["of flash"], 0.75)
        self.assertNotIn("of flash", times[1])

    def test_a_program_without_end_is_ended(self):
        self.assertEqual(device.run(["sleep", "30"], 0)[0], device.OUT_OF_TIME)


if __name__ == "__main__":
    unittest.main()
