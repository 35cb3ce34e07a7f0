#!/usr/bin/env python3
"""P ranks on one machine beside one process with P threads: the same rows, the same tile.

    ranks.py [--bench FOLDER] [--ranks P] [--rows B...] [--widths D...] [--pairs N]

Ranks and threads take turns; a round in which a thread waited for a core for more than a hundredth
of the time is left out, and without clean rounds a line says so. Ratios are of medians.
"""
import argparse
import os
import pathlib
import shutil
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
GOAL = 0.95
ROUNDS = 4  # of one start


def clean_seconds(bench, ranks, rows, width, threads):
    mpirun = [shutil.which("mpirun") or sys.exit("ranks: no mpirun"), "--bind-to", "none", "-n",
              str(ranks)]
    if os.geteuid() == 0:
        mpirun.append("--allow-run-as-root")
    done = subprocess.run([*mpirun, bench, *map(str, (rows, width, threads, ROUNDS))],
                          capture_output=True, text=True, check=True)
    rounds = [tuple(map(float, line.split())) for line in done.stdout.splitlines()]
    return [seconds for seconds, waited in rounds[1:] if waited < 0.01 * seconds]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bench", type=pathlib.Path, default=ROOT / "build/bench")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rows", type=int, nargs="+", default=[512, 1024, 2048])
    parser.add_argument("--widths", type=int, nargs="+", default=[64])
    parser.add_argument("--pairs", type=int, default=4)
    options = parser.parse_args()
    bench, P = options.bench.resolve() / "mpi_ring_bench", options.ranks
    print(f"| rows a rank | D | {P} ranks, ms | {P} threads, ms | threads' time / ranks' | goal |"
          " |\n|---|---|---|---|---|---|---|")
    for rows in options.rows:
        for width in options.widths:
            ring, threads = [], []
            for _ in range(options.pairs):
                ring += clean_seconds(bench, P, rows, width, 1)
                threads += clean_seconds(bench, 1, P * rows, width, P)
            if not ring or not threads:
                print(f"| {rows} | {width} | no round without waiting for a core | | | | |")
                continue
            a, b = statistics.median(ring), statistics.median(threads)
            goal = GOAL if rows >= 1024 else 0
            said = "" if goal == 0 else "reached" if b / a >= goal else "missed"
            print(f"| {rows} | {width} | {a * 1e3:.1f} | {b * 1e3:.1f} | {b / a:.2f} | "
                  f"{goal or '–'} | {said} |", flush=True)


if __name__ == "__main__":
    main()
