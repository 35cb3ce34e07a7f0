#!/usr/bin/env python3
"""Large rings on a simulated cluster, beside the model that was derived for them.

    scale.py PROGRAM [--smpirun PATH] [--ranks P...] [--write PAGE | --check PAGE]

PROGRAM is the module that smpirun loads (build/bin/ringproof-mpi-scale). Without an option the
tables are printed. --write puts them between the marks of PAGE, --check exits 1 if they differ from
what stands there. Every figure is deterministic: the simulator counts, it does not measure.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

FLOPS, BANDWIDTH, LATENCY = 1e12, 1e10, 1e-6  # of each machine and its link
WIDTH = 64
MODEL_MARGIN = 0.05   # of the simulated time, for every ring
SIMULATOR = ["--cfg=smpi/bw-factor:0:1", "--cfg=smpi/lat-factor:0:1", "--cfg=smpi/host-speed:1",
             "--cfg=smpi/simulate-computation:no", "--cfg=network/crosstraffic:0",
             "--cfg=network/TCP-gamma:0", "--cfg=network/weight-S:0", "--cfg=smpi/os:0:0:0",
             "--cfg=smpi/or:0:0:0", "--cfg=smpi/ois:0:0:0", "--cfg=smpi/async-small-thresh:0",
             "--cfg=smpi/send-is-detached-thresh:0", "--log=root.thres:error"]

PLATFORM = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="ring" prefix="n" suffix="" radical="0-{last}" speed="{flops}f"
           bw="{bandwidth}Bps" lat="{half_latency}s" sharing_policy="SPLITDUPLEX"/>
</platform>
"""


class Simulator:
    """Runs the program on as many machines as a ring has ranks."""

    def __init__(self, program, smpirun):
        self.program, self.smpirun = program, smpirun
        self.folder = tempfile.TemporaryDirectory()

    def run(self, ranks, layout="contiguous", mask="full", rows=512, overlap=True):
        folder = pathlib.Path(self.folder.name)
        platform, hosts = folder / f"{ranks}.xml", folder / f"{ranks}.hosts"
        platform.write_text(PLATFORM.format(last=ranks - 1, flops=FLOPS, bandwidth=BANDWIDTH,
                                            half_latency=LATENCY / 2))
        hosts.write_text("".join(f"n{n}\n" for n in range(ranks)))
        done = subprocess.run(
            [self.smpirun, "-np", str(ranks), "-platform", platform, "-hostfile", hosts,
             *SIMULATOR, self.program, layout, mask, str(rows), str(WIDTH), repr(FLOPS),
             repr(BANDWIDTH), repr(LATENCY), "on" if overlap else "off"],
            capture_output=True, text=True)
        lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
        if done.returncode != 0 or len(lines) != 1:  # a deadlock may still exit 0
            sys.exit(f"scale: the simulated ring of {ranks} failed:\n{done.stdout}{done.stderr}")
        return json.loads(lines[0])


def ratio(a, b):
    return f"{a / b:.3f}"


def size_table(simulator, ranks):
    """Full rings: time follows the formula, and every link carries the same bytes."""
    rows = ["| ranks | overlap | simulated, ms | formula, ms | simulated / formula |"
            " bytes of a rank, least | most |", "|---|---|---|---|---|---|---|"]
    for overlap in (True, False):
        for size in ranks:
            got = simulator.run(size, overlap=overlap)
            check(got["seconds"], got["formula"], f"{size} ranks")
            if got["least_bytes"] != got["most_bytes"]:
                sys.exit(f"scale: {size} ranks: traffic is not uniform")
            rows.append(f"| {size} | {'on' if overlap else 'off'} | {got['seconds'] * 1e3:.3f} | "
                        f"{got['formula'] * 1e3:.3f} | {ratio(got['seconds'], got['formula'])} | "
                        f"{got['least_bytes']} | {got['most_bytes']} |")
    return rows


def layout_table(simulator, sizes):
    """Causal rings: what the balanced layouts gain."""
    rows = ["| ranks | layout | simulated, ms | model, ms | contiguous / this |",
            "|---|---|---|---|---|"]
    for size in sizes:
        times = {}
        for layout in ("contiguous", "zigzag", "striped"):
            got = simulator.run(size, layout, "causal", rows=1024)
            check(got["seconds"], got["model"], f"{layout}, {size} ranks")
            times[layout] = got["seconds"]
            gain = ratio(times["contiguous"], got["seconds"])
            rows.append(f"| {size} | {layout} | {got['seconds'] * 1e3:.3f} | "
                        f"{got['model'] * 1e3:.3f} | {gain} |")
    return rows


def crossing_table(simulator, size=16):
    """Below b* a full ring waits for its links: b* from rings on both sides of it, and by (17)."""
    formula = 4 * FLOPS / (2 * BANDWIDTH)
    rows = ["| rows of a rank | simulated, ms | of it waiting |", "|---|---|---|"]
    crossing = None
    for b in (50, 100, 150, 200, 250, 300, 400):
        got = simulator.run(size, rows=b)
        compute = 4 * WIDTH * b * b / FLOPS
        waiting = 1 - size * compute / got["seconds"]
        rows.append(f"| {b} | {got['seconds'] * 1e3:.4f} | {waiting:.3f} |")
        if waiting > 0.01:  # the step lasts as long as its transfer, which grows like b
            step = (got["seconds"] - compute) / (size - 1)
            crossing = b * (step - LATENCY) / compute
    rows += ["", f"Crossing point: {crossing:.1f} rows by simulation, {formula:.1f} by (17)."]
    check(crossing, formula, "crossing point")
    return rows


def check(simulated, derived, what):
    if abs(simulated / derived - 1) > MODEL_MARGIN:
        sys.exit(f"scale: {what}: simulated {simulated:.6g}, derived {derived:.6g}: more than "
                 f"{MODEL_MARGIN:.0%} apart")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--smpirun", default="smpirun")
    parser.add_argument("--ranks", type=int, nargs="+", default=[4, 16, 64])
    parser.add_argument("--write", type=pathlib.Path)
    parser.add_argument("--check", type=pathlib.Path)
    options = parser.parse_args()
    simulator = Simulator(options.program.resolve(), options.smpirun)
    causal = [size for size in options.ranks if 4 <= size <= 64]
    text = "\n".join([
        f"Machines of {FLOPS:.0e} operations a second, links of {BANDWIDTH:.0e} bytes a second and "
        f"{LATENCY:.0e} s; one head, D = {WIDTH}, binary32.", "",
        "Full attention, 512 rows a rank:", "", *size_table(simulator, options.ranks), "",
        "Causal attention, 1024 rows a rank, overlap on:", "", *layout_table(simulator, causal), "",
        "Full attention, 16 ranks, fewer and fewer rows:", "", *crossing_table(simulator)]) + "\n"
    page = options.write or options.check
    if page is None:
        print(text, end="")
        return
    begin, end = "<!-- scale: begin -->\n", "<!-- scale: end -->"
    before, _, rest = page.read_text(encoding="utf-8").partition(begin)
    old, mark, after = rest.partition(end)
    if not mark:
        sys.exit(f"scale: {page} has no marks")
    if options.write:
        page.write_text(before + begin + text + mark + after, encoding="utf-8")
    elif old != text:
        sys.exit(f"scale: the tables of {page} are not what the simulator gives; --write them anew")


if __name__ == "__main__":
    main()
