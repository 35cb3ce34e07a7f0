#!/usr/bin/env python3
"""Every kernel and the ring through the judge, then times: tests/device.sh says how to run it.

    device.py --programs FOLDER --cuda PROGRAM --out FOLDER [--bench PROGRAM] [--gpus N] [--quick]

Writes OUT/device.json and a table. Exit status 1 if any answer fails, or nothing was judged.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import cases  # noqa: E402

TYPE_COLUMN = {"F32": "fp32", "BF16": "bf16", "F16": "fp16"}
JUDGE_SHARE = 0.5  # of the time; the rest is for the checker, the times and the harvest
OUT_OF_TIME, SANITIZER_ERRORS = 124, 9


def run(command, limit=120):
    """(status, text) of a command; OUT_OF_TIME if it did not end."""
    try:
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True,
                              timeout=max(limit, 1))
    except subprocess.TimeoutExpired:
        return OUT_OF_TIME, f"no end within {limit:.0f} s"
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
        steps.append({"step": cells[0], "name": cells[1], "takes": takes,
                      "backward": "fp32" not in takes})  # the tensor core steps have one
    return steps


class DeviceRun:
    """One run: what was judged, and what was left out."""

    def __init__(self, options):
        self.options, self.begun = options, time.monotonic()
        self.judged, self.skipped = [], []

    def left(self, share=1.0):
        """Seconds of a share of the whole time."""
        return share * self.options.seconds - (time.monotonic() - self.begun)

    def judge(self, step, case, path, ranks):
        """Runs one step on one case and asks the judge; the entry of the report."""
        entry = {"step": step["step"], "case": case, "ranks": ranks}
        if self.left(JUDGE_SHARE) <= 0:
            return entry | {"verdict": "no time"}
        answer = path.with_suffix(f".{step['step']}.{ranks}.answer.safetensors")
        backward = ["--backward"] if step["backward"] else []
        status, text = run([self.options.cuda, path, "-o", answer, "--ranks", ranks, "--kernel",
                            step["step"], "--layout", "zigzag", *backward])
        verdict = f"exit {status}"
        if status == 0:
            status, text = run([self.options.programs / "ringproof", "check", answer])
            verdict = cases.VERDICTS.get(status, f"exit {status}")
        answer.unlink(missing_ok=True)
        if verdict not in cases.ACCEPTED:
            print(f"device: step {step['step']}, {case}, {ranks} ranks: {verdict}\n{text}")
        return entry | {"verdict": verdict}

    def judge_all(self, steps, folder):
        """Several at once: a program spends most of its time on starting the device."""
        ranks = [1] + ([min(4, self.options.gpus)] if self.options.gpus > 1 else [])
        if self.options.gpus == 1:
            self.skipped.append("rings: one GPU, and NCCL wants one for each rank")
        suite = cases.suite(33 if self.options.quick else 129)
        chosen = list(suite.items())[:3 if self.options.quick else len(suite)]
        jobs = []
        for case, (dtype, tensors, spec) in chosen:
            path = folder / f"{case}.safetensors"
            cases.write(path, tensors, spec)
            jobs += [(step, case, path, count) for step in steps for count in ranks
                     if TYPE_COLUMN[dtype] in step["takes"]]
        workers = 1 if self.options.quick else min(6, os.cpu_count() or 1)
        with concurrent.futures.ThreadPoolExecutor(workers) as pool:
            entries = list(pool.map(lambda job: self.judge(*job), jobs))
        self.judged = [entry for entry in entries if entry["verdict"] != "no time"]
        if late := len(entries) - len(self.judged):
            self.skipped.append(f"judge: no time for {late} of {len(entries)} answers")

    def sanitize(self, folder):
        """NVIDIA's own checker on one causal case of the last step, forward and backward."""
        tool = shutil.which("compute-sanitizer") or shutil.which(
            "compute-sanitizer", path="/usr/local/cuda/bin")
        path = folder / "causal.bf16.safetensors"
        if not tool or not path.exists() or not self.options.bench:
            self.skipped.append("compute-sanitizer: not found" if not tool
                                else "compute-sanitizer: no GPU build")
            return
        for check in ("memcheck", "racecheck", "synccheck"):
            # NCCL asks the driver what it can do, and is told no: that is nobody's error.
            quiet = ["--report-api-errors", "no"] if check == "memcheck" else []
            status, text = run([tool, "--tool", check, *quiet, "--error-exitcode",
                                SANITIZER_ERRORS, self.options.cuda, path, "--backward", "-o",
                                folder / "sanitized.safetensors"], min(60, self.left(0.75)))
            if status in (0, SANITIZER_ERRORS):
                self.judged.append({"step": "last", "case": check,
                                    "verdict": "FAIL" if status else "PASS"})
            else:  # the tool itself cannot: some machines refuse it the device
                self.skipped.append(f"compute-sanitizer {check}: exit {status}: "
                                    f"{text.strip()[-160:]}")
            if status:
                print(f"device: compute-sanitizer {check}:\n{text[-2000:]}")

    def times(self):
        """Lines "step width queries causal milliseconds teraflops" of the benchmark."""
        if not self.options.bench:
            self.skipped.append("times: no GPU")
            return []
        status, text = run([self.options.bench], min(120, self.left()))
        if status:
            self.skipped.append(f"times: {text.strip()[:200]}")
            return []
        return table_of(text)

    def harvest(self):
        """Answers and times of other implementations; a separate process, as they may crash."""
        folder = self.options.out / "harvest"
        (folder / "harvest.json").unlink(missing_ok=True)
        seconds = self.left() - 30  # what has begun may take a while yet
        status, text = run([sys.executable, pathlib.Path(__file__).parent / "harvest.py",
                            "--programs", self.options.programs, "--out", folder,
                            "--seconds", f"{seconds:.0f}"], self.left())
        try:
            found = json.loads((folder / "harvest.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            found = {"skipped": [], "peers": []}
        if status:
            found["skipped"].append(f"harvest: exit {status}: {text.strip()[-200:]}")
        return found


def table_of(text):
    """Rows of a table whose first line names the columns; numbers as numbers."""
    names, *lines = (line.split() for line in text.splitlines())
    number = {"width": int, "queries": int, "milliseconds": float, "teraflops": float}
    return [{name: number.get(name, str)(cell) for name, cell in zip(names, cells)}
            for cells in lines]


def ratios(times, peers):
    """Adds to each time of a step what share of PyTorch's flash back end's speed it reaches."""
    shape = ("width", "queries", "causal")
    flash = {tuple(row[x] for x in shape): row["milliseconds"] for peer in peers
             if peer["name"] == "torch sdpa flash" for row in peer["times"]}
    for row in times:
        if peer := flash.get(tuple(row[x] for x in shape)):
            row["of flash"] = round(peer / row["milliseconds"], 3)


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
        contract = peer["contract"]
        name = contract if isinstance(contract, str) else contract["base"] + " with terms"
        print(f"  peer {peer['name']} on {peer['device']}: {peer['verdict']} under {name}: "
              + " ".join(peer["answers"]))
        for row in peer["times"]:
            print("    time " + " ".join(f"{key} {value}" for key, value in row.items()))
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
    parser.add_argument("--seconds", type=float, default=400, help="for everything")
    parser.add_argument("--quick", action="store_true", help="few small cases, to test the logic")
    options = parser.parse_args()
    folder = options.out / "cases"
    folder.mkdir(parents=True, exist_ok=True)
    device_run = DeviceRun(options)
    device_run.judge_all(ladder(options.cuda), folder)
    device_run.sanitize(folder)
    times = device_run.times()
    peers = ({"peers": [], "skipped": ["harvest: --quick"]} if options.quick
             else device_run.harvest())
    ratios(times, peers["peers"])
    report = {"device": options.device, "judged": device_run.judged, "times": times,
              "peers": peers["peers"], "skipped": device_run.skipped + peers["skipped"]}
    (options.out / "device.json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    table(report)
    words = [entry["verdict"] for entry in device_run.judged]
    bad = [word for word in words if word not in cases.ACCEPTED]
    return 1 if bad or "PASS" not in words else 0


if __name__ == "__main__":
    sys.exit(main())
