#!/usr/bin/env python3
"""Large rings on a simulated cluster, beside the model that was derived for them.

    scale.py PROGRAM [--smpirun PATH] [--ranks P...] [--write PAGE | --check PAGE]
    scale.py PROGRAM [--smpirun PATH] --ring P LAYOUT MASK OVERLAP

PROGRAM is the module that smpirun loads (build/bin/ringproof-mpi-scale). Without an option the
tables are printed. --write puts them between the marks of PAGE and draws the pictures beside it;
--check exits 1 if they differ from what stands there. With --ranks, --check looks for the rows of
these sizes only. --ring simulates one ring (1024 zigzag causal on) and prints its line: the way for
sizes that take minutes each. Every figure is deterministic: the simulator counts, it does not
measure.
"""

import argparse
import json
import math
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import figures as figures_module  # noqa: E402
from figures import Curve  # noqa: E402

FLOPS, BANDWIDTH, LATENCY = 1e12, 1e10, 1e-6  # of each machine and its link
WIDTH, BYTES = 64, 4
SIZES = [4, 16, 64, 256]
LAYOUTS = ("contiguous", "zigzag", "striped")
FULL_ROWS, CAUSAL_ROWS, CROSSING_RANKS = 256, 512, 16
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

    def run(self, ranks, layout="contiguous", mask="full", rows=512, overlap=True,
            latency=LATENCY):
        folder = pathlib.Path(self.folder.name)
        platform, hosts = folder / f"{ranks}.xml", folder / f"{ranks}.hosts"
        platform.write_text(PLATFORM.format(last=ranks - 1, flops=FLOPS, bandwidth=BANDWIDTH,
                                            half_latency=latency / 2))
        hosts.write_text("".join(f"n{n}\n" for n in range(ranks)))
        done = subprocess.run(
            [self.smpirun, "-np", str(ranks), "-platform", platform, "-hostfile", hosts,
             *SIMULATOR, self.program, layout, mask, str(rows), str(WIDTH), repr(FLOPS),
             repr(BANDWIDTH), repr(latency), "on" if overlap else "off"],
            capture_output=True, text=True)
        lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
        if done.returncode != 0 or len(lines) != 1:  # a deadlock may still exit 0
            sys.exit(f"scale: the simulated ring of {ranks} failed:\n{done.stdout}{done.stderr}")
        return json.loads(lines[0])


def ratio(a, b):
    return f"{a / b:.3f}"


def check(simulated, derived, what):
    if abs(simulated / derived - 1) > MODEL_MARGIN:
        sys.exit(f"scale: {what}: simulated {simulated:.6g}, derived {derived:.6g}: more than "
                 f"{MODEL_MARGIN:.0%} apart")


def one_ring(simulator, size, layout, mask, overlap):
    """One ring beside the model, as a line of a table."""
    got = simulator.run(int(size), layout, mask, overlap=overlap == "on",
                        rows=FULL_ROWS if mask == "full" else CAUSAL_ROWS)
    check(got["seconds"], got["model"], f"{layout}, {mask}, {size} ranks")
    return (f"| {size} | {mask} | {layout} | {overlap} | {got['seconds'] * 1e3:.3f} | "
            f"{got['model'] * 1e3:.3f} | {ratio(got['seconds'], got['model'])} | "
            f"{got['least_bytes']} | {got['most_bytes']} |")


def full_rings(simulator, sizes):
    """Full attention with and without overlap: what the simulator gave, by (overlap, ranks)."""
    results = {}
    for overlap in (True, False):
        for size in sizes:
            got = results[overlap, size] = simulator.run(size, rows=FULL_ROWS, overlap=overlap)
            check(got["seconds"], got["formula"], f"{size} ranks")
            if got["least_bytes"] != got["most_bytes"]:
                sys.exit(f"scale: {size} ranks: traffic is not uniform")
    return results


def size_table(results):
    """Time follows the formula, and every link carries the same bytes."""
    rows = ["| ranks | overlap | simulated, ms | formula, ms | simulated / formula |"
            " bytes of a rank, least | most |", "|---|---|---|---|---|---|---|"]
    for (overlap, size), got in results.items():
        rows.append(f"| {size} | {'on' if overlap else 'off'} | {got['seconds'] * 1e3:.3f} | "
                    f"{got['formula'] * 1e3:.3f} | {ratio(got['seconds'], got['formula'])} | "
                    f"{got['least_bytes']} | {got['most_bytes']} |")
    return rows


def causal_rings(simulator, sizes):
    """Causal attention in every layout, by (ranks, layout)."""
    results = {}
    for size in sizes:
        for layout in LAYOUTS:
            got = results[size, layout] = simulator.run(size, layout, "causal", rows=CAUSAL_ROWS)
            check(got["seconds"], got["model"], f"{layout}, {size} ranks")
    return results


def gain(results, size, layout):
    return results[size, "contiguous"]["seconds"] / results[size, layout]["seconds"]


def layout_table(results):
    """What the balanced layouts gain."""
    rows = ["| ranks | layout | simulated, ms | model, ms | contiguous / this |"
            " bytes of a rank, least | most |", "|---|---|---|---|---|---|---|"]
    for (size, layout), got in results.items():
        rows.append(f"| {size} | {layout} | {got['seconds'] * 1e3:.3f} | "
                    f"{got['model'] * 1e3:.3f} | {gain(results, size, layout):.3f} | "
                    f"{got['least_bytes']} | {got['most_bytes']} |")
    return rows


def compute_seconds(rows):
    return 4 * WIDTH * rows * rows / FLOPS


def waiting(simulator, rows, latency):
    """The share of the time in which a full ring waits for its links."""
    got = simulator.run(CROSSING_RANKS, rows=rows, latency=latency)
    return got["seconds"], 1 - CROSSING_RANKS * compute_seconds(rows) / got["seconds"]


def derived_crossing(latency):
    """The positive solution of 4 b b D / F = latency + 2 b D w / W; (17) if there is no latency."""
    a, b = 4 * WIDTH / FLOPS, 2 * WIDTH * BYTES / BANDWIDTH
    return (b + math.sqrt(b * b + 4 * a * latency)) / (2 * a)


def simulated_crossing(simulator, latency):
    """The fewest rows of a rank with which a ring does not wait, by bisection."""
    few, enough = 100, 400
    while enough - few > 1:
        middle = (few + enough) // 2
        if waiting(simulator, middle, latency)[1] > 1e-3:
            few = middle
        else:
            enough = middle
    check(enough, derived_crossing(latency), "crossing point")
    return enough


def crossing_table(simulator):
    """Below b* a full ring waits for its links: rings on both sides of it; lines and points."""
    rows = ["| rows of a rank | simulated, ms | of it waiting |", "|---|---|---|"]
    points = []
    for b in (50, 100, 150, 200, 250, 300, 400):
        seconds, share = waiting(simulator, b, LATENCY)
        points.append((b, share))
        rows.append(f"| {b} | {seconds * 1e3:.4f} | {share:.3f} |")
    found, ideal = (simulated_crossing(simulator, latency) for latency in (LATENCY, 0.0))
    rows += ["", f"Crossing point: {found} rows by simulation, {derived_crossing(LATENCY):.1f} by "
             f"the model; on links without latency {ideal} rows by simulation, "
             f"{derived_crossing(0.0):.1f} by (17)."]
    return rows, points


def waiting_of_model(rows):
    compute = compute_seconds(rows)
    step = max(compute, LATENCY + 2 * rows * WIDTH * BYTES / BANDWIDTH)
    seconds = (CROSSING_RANKS - 1) * step + compute
    return 1 - CROSSING_RANKS * compute / seconds


def figures(full, causal, crossing):
    """The pictures of the page, by file name."""
    sizes = sorted({size for _, size in full})
    def of_full(overlap, what, unit):
        return [(size, full[overlap, size][what] * unit) for size in sizes]
    time = figures_module.chart(
        "Full attention: time of a ring", "ranks", "milliseconds",
        [Curve("overlap, formula", of_full(True, "formula", 1e3), marks=False),
         Curve("none, formula", of_full(False, "formula", 1e3), marks=False),
         Curve("overlap, simulated", of_full(True, "seconds", 1e3), line=False),
         Curve("none, simulated", of_full(False, "seconds", 1e3), line=False)], x_ticks=sizes)
    block = 2 * FULL_ROWS * WIDTH * BYTES
    traffic = figures_module.chart(
        "Full attention: what a rank sends", "ranks", "megabytes",
        [Curve("2 b D w (P - 1)", [(size, block * (size - 1) * 1e-6) for size in sizes],
               marks=False),
         Curve("most of a rank", of_full(True, "most_bytes", 1e-6), line=False),
         Curve("least of a rank", of_full(True, "least_bytes", 1e-6), line=False)],
        x_ticks=sizes)
    sizes = sorted({size for size, _ in causal})
    def of_causal(layout, what, unit):
        return [(size, causal[size, layout][what] * unit) for size in sizes]
    layouts = figures_module.chart(
        "Causal attention: time by layout", "ranks", "milliseconds",
        [Curve(f"{layout}", of_causal(layout, "seconds", 1e3)) for layout in LAYOUTS],
        x_ticks=sizes)
    model = [(b, max(waiting_of_model(b), 0.0)) for b in range(50, 401, 5)]
    waits = figures_module.chart(
        f"Full attention, {CROSSING_RANKS} ranks: share of the time spent waiting",
        "rows of a rank", "share",
        [Curve("model", model, marks=False),
         Curve("simulated", [(b, max(share, 0.0)) for b, share in crossing], line=False)],
        x_ticks=[50, 100, 150, 200, 250, 300, 350, 400], logarithmic=(False, False))
    return {"scale-time.svg": time, "scale-layouts.svg": layouts, "scale-traffic.svg": traffic,
            "scale-waiting.svg": waits}


def page_text(full, causal, crossing_rows):
    def picture(name, words):
        return ["", f"![{words}](pictures/{name})"]
    return "\n".join([
        f"Machines of {FLOPS:.0e} operations a second, links of {BANDWIDTH:.0e} bytes a second and "
        f"{LATENCY:.0e} s; one head, D = {WIDTH}, binary32.", "",
        f"Full attention, {FULL_ROWS} rows a rank:", "", *size_table(full),
        *picture("scale-time.svg", "Time of full rings by number of ranks, simulated on the "
                 "line of the formula, with overlap below without"),
        *picture("scale-traffic.svg", "Bytes that a rank sends by number of ranks: least and most "
                 "lie on the line of the formula"), "",
        f"Causal attention, {CAUSAL_ROWS} rows a rank, overlap on:", "", *layout_table(causal),
        *picture("scale-layouts.svg", "Time of causal rings by number of ranks: contiguous takes "
                 "nearly twice as long as zigzag and striped"), "",
        f"Full attention, {CROSSING_RANKS} ranks, fewer and fewer rows:", "", *crossing_rows,
        *picture("scale-waiting.svg", "Share of the time spent waiting by rows of a rank, falling "
                 "to zero at the crossing point, simulated on the curve of the model")]) + "\n"


def compare(page, old, text, drawn, everything):
    """Exits unless the page shows what was simulated: all of it, or the rows of some sizes."""
    if everything:
        same = old == text and all(
            (page.parent / "pictures" / name).is_file()
            and (page.parent / "pictures" / name).read_text(encoding="utf-8") == picture
            for name, picture in drawn.items())
    else:
        shown = set(old.splitlines())
        same = all(line in shown for line in text.splitlines() if line.startswith("|"))
    if not same:
        sys.exit(f"scale: {page} is not what the simulator gives; --write it anew")
    print(f"scale: {page} shows what the simulator gives")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--smpirun", default="smpirun")
    parser.add_argument("--ranks", type=int, nargs="+", default=SIZES)
    parser.add_argument("--ring", nargs=4, metavar=("P", "LAYOUT", "MASK", "OVERLAP"))
    parser.add_argument("--write", type=pathlib.Path)
    parser.add_argument("--check", type=pathlib.Path)
    options = parser.parse_args()
    simulator = Simulator(options.program.resolve(), options.smpirun)
    if options.ring:
        print(one_ring(simulator, *options.ring))
        return
    full = full_rings(simulator, options.ranks)
    causal = causal_rings(simulator, options.ranks)
    crossing_rows, crossing = crossing_table(simulator)
    text = page_text(full, causal, crossing_rows)
    page = options.write or options.check
    if page is None:
        print(text, end="")
        return
    drawn = figures(full, causal, crossing)
    begin, end = "<!-- scale: begin -->\n", "<!-- scale: end -->"
    before, _, rest = page.read_text(encoding="utf-8").partition(begin)
    old, mark, after = rest.partition(end)
    if not mark:
        sys.exit(f"scale: {page} has no marks")
    if options.check:
        compare(page, old, text, drawn, options.ranks == SIZES)
        return
    page.write_text(before + begin + text + mark + after, encoding="utf-8")
    for name, picture in drawn.items():
        (page.parent / "pictures" / name).write_text(picture, encoding="utf-8")


if __name__ == "__main__":
    main()
