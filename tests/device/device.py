#!/usr/bin/env python3
"""Every kernel and the ring through the judge, then times: tests/device.sh says how to run it.

    device.py --programs FOLDER --cuda PROGRAM --out FOLDER [--bench PROGRAM] [--gpus N] [--quick]

Writes OUT/device.json and a table. Exit status 1 if any answer fails, or nothing was judged.
"""

import argparse
import json
import pathlib
import re
import shutil
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import cases  # noqa: E402

TYPE_COLUMN = {"F32": "fp32", "BF16": "bf16", "F16": "fp16"}
VERDICTS = {0: "PASS", 1: "FAIL", 3: "UNDECIDED"}


def run(command, limit=120):
    """(status, text) of a command; 124 if it ran out of time."""
    try:
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True,
                              timeout=limit)
    except subprocess.TimeoutExpired:
        return 124, "no end"
    return done.returncode, done.stdout + done.stderr


def ladder(cuda):
    """Steps and the types they take, from the program itself."""
    status, text = run([cuda, "--list"])
    if status != 0:
        raise SystemExit(f"device: {cuda} --list: {text}")
    columns = ("fp32", "bf16", "fp16")
    steps = []
    for line in text.splitlines()[1:]:
        cells = re.split(r"\s{2,}", line.strip())
        takes = [column for column, cell in zip(columns, cells[2:5]) if cell != "-"]
        steps.append({"step": cells[0], "name": cells[1], "takes": takes})
    return steps


class DeviceRun:
    """One run: what was judged, and what was left out."""

    def __init__(self, options):
        self.options, self.begun = options, time.monotonic()
        self.judged, self.skipped = [], []

    def late(self):
        return time.monotonic() - self.begun > self.options.seconds

    def judge(self, step, case, path, ranks):
        """Runs one step on one case and asks the judge."""
        answer = path.with_suffix(".answer.safetensors")
        status, text = run([self.options.cuda, path, "-o", answer, "--ranks", ranks, "--kernel",
                            step, "--layout", "zigzag"])
        verdict = f"exit {status}"
        if status == 0:
            status, text = run([self.options.programs / "ringproof", "check", answer])
            verdict = VERDICTS.get(status, f"exit {status}")
        answer.unlink(missing_ok=True)
        self.judged.append({"step": step, "case": case, "ranks": ranks, "verdict": verdict})
        if verdict not in ("PASS", "UNDECIDED"):
            print(f"device: step {step}, {case}, {ranks} ranks: {verdict}\n{text}")

    def judge_all(self, steps, folder):
        ranks = [1] + ([min(4, self.options.gpus)] if self.options.gpus > 1 else [])
        if self.options.gpus == 1:
            self.skipped.append("rings: one GPU, and NCCL wants one for each rank")
        suite = cases.suite(33 if self.options.quick else 129)
        chosen = list(suite.items())[:3 if self.options.quick else len(suite)]
        for case, (dtype, tensors, spec) in chosen:
            path = folder / f"{case}.safetensors"
            cases.write(path, tensors, spec)
            for step in steps:
                if TYPE_COLUMN[dtype] not in step["takes"]:
                    continue
                for count in ranks:
                    if self.late():
                        self.skipped.append(f"{case}: no time")
                        return
                    self.judge(step["step"], case, path, count)

    def sanitize(self, folder):
        """NVIDIA's own checker on one causal case of the last step."""
        tool = shutil.which("compute-sanitizer")
        path = folder / "causal.bf16.safetensors"
        if not tool or not path.exists() or not self.options.bench:
            self.skipped.append("compute-sanitizer: not found" if not tool
                                else "compute-sanitizer: no GPU build")
            return
        for check in ("memcheck", "racecheck", "synccheck"):
            status, text = run([tool, "--tool", check, "--error-exitcode", "9", self.options.cuda,
                                path, "-o", folder / "sanitized.safetensors"])
            self.judged.append({"step": "last", "case": check,
                                "verdict": "PASS" if status == 0 else "FAIL"})
            if status:
                print(f"device: compute-sanitizer {check}:\n{text[-2000:]}")

    def times(self):
        """Lines "step width queries causal milliseconds teraflops" of the benchmark."""
        if not self.options.bench:
            self.skipped.append("times: no GPU")
            return []
        status, text = run([self.options.bench], limit=180)
        if status:
            self.skipped.append(f"times: {text.strip()[:200]}")
            return []
        names = ("step", "width", "queries", "causal", "milliseconds", "teraflops")
        return [dict(zip(names, line.split())) for line in text.splitlines()[1:]]


def harvest(options):
    """Answers and times of other implementations; a separate process, because they may crash."""
    status, text = run([sys.executable, pathlib.Path(__file__).parent / "harvest.py",
                        "--programs", options.programs, "--out", options.out / "harvest"],
                       limit=150)
    try:
        return json.loads(text.splitlines()[-1])
    except (ValueError, IndexError):
        return {"skipped": [f"harvest: exit {status}: {text.strip()[-200:]}"], "peers": []}


def table(report):
    """What a person wants to know."""
    print(f"device: {report['device']}")
    verdicts = {}
    for entry in report["judged"]:
        row = verdicts.setdefault(entry["step"], {})
        row[entry["verdict"]] = row.get(entry["verdict"], 0) + 1
    for step, counts in sorted(verdicts.items()):
        print(f"  step {step}: " + ", ".join(f"{n} {word}" for word, n in sorted(counts.items())))
    for row in report["times"]:
        print("  time " + " ".join(f"{key} {value}" for key, value in row.items()))
    for peer in report["peers"]:
        print(f"  peer {peer['name']}: {peer['verdict']} under {peer['contract']}, "
              f"{peer.get('milliseconds', '-')} ms")
    for sentence in report["skipped"]:
        print(f"  skipped {sentence}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--programs", type=pathlib.Path, required=True)
    parser.add_argument("--cuda", type=pathlib.Path, required=True)
    parser.add_argument("--bench", type=pathlib.Path)
    parser.add_argument("--device", default="unknown")
    parser.add_argument("--gpus", type=int, default=4)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--seconds", type=float, default=200)
    parser.add_argument("--quick", action="store_true", help="few small cases, to test the logic")
    options = parser.parse_args()
    folder = options.out / "cases"
    folder.mkdir(parents=True, exist_ok=True)
    device_run = DeviceRun(options)
    device_run.judge_all(ladder(options.cuda), folder)
    device_run.sanitize(folder)
    times = device_run.times()
    peers = {"peers": [], "skipped": ["harvest: --quick"]} if options.quick else harvest(options)
    report = {"device": options.device, "judged": device_run.judged, "times": times,
              "peers": peers["peers"], "skipped": device_run.skipped + peers["skipped"]}
    (options.out / "device.json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    table(report)
    words = [entry["verdict"] for entry in device_run.judged]
    bad = [word for word in words if word not in ("PASS", "UNDECIDED")]
    return 1 if bad or "PASS" not in words else 0


if __name__ == "__main__":
    sys.exit(main())
