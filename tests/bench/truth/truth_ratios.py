#!/usr/bin/env python3
"""How the certified path compares with attention that certifies nothing, and with ball arithmetic.

CPU seconds of one thread pinned to one processor, interleaved in one run; prints a table of ratios.
    truth_ratios.py [build/bench/truth_bench] [--rounds N]
The script makes a virtual environment of its own beside the benchmark (PyPI: numpy, python-flint).
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import venv

ROOT = pathlib.Path(__file__).resolve().parents[3]
DIM = 64


def numpy_attention(n, block):
    """Dense attention in float64, `block` queries at a time; block = n is the plain form."""
    import numpy

    random = numpy.random.default_rng(1)
    q, k, v = (random.standard_normal((n, DIM)) for _ in range(3))

    def run():
        out = numpy.empty_like(q)
        for first in range(0, n, block):
            s = q[first : first + block] @ k.T / numpy.sqrt(DIM)
            s -= s.max(axis=1, keepdims=True)
            numpy.exp(s, out=s)
            out[first : first + block] = (s @ v) / s.sum(axis=1, keepdims=True)
        return out

    return run


def arb_attention(n):
    """The same in Arb's balls of 128 bits: matrix products by Arb, the rest element by element."""
    import random

    import flint

    flint.ctx.prec = 128
    source = random.Random(1)
    q, k, v = (
        flint.arb_mat([[source.gauss(0, 1) for _ in range(DIM)] for _ in range(n)])
        for _ in range(3)
    )
    scale = 1 / flint.arb(DIM).sqrt()

    def run():
        s = q * k.transpose() * scale
        weights = flint.arb_mat([[s[i, j].exp() for j in range(n)] for i in range(n)])
        ones = flint.arb_mat([[1] for _ in range(n)])
        total, out = weights * ones, weights * v
        return [[out[i, c] / total[i, 0] for c in range(DIM)] for i in range(n)]

    return run


WORK = {
    "numpy dense": lambda n: numpy_attention(n, n),
    "numpy blocks": lambda n: numpy_attention(n, 128),
    "Arb": arb_attention,
}


def work():
    """Reads lines `name N`, answers the median CPU seconds of one run each."""
    import time

    for line in sys.stdin:
        name, n = line.rsplit(" ", 1)
        run = WORK[name](int(n))
        run()
        seconds, end = [], time.thread_time() + 1
        while len(seconds) < 3 or (time.thread_time() < end and len(seconds) < 101):
            start = time.thread_time()
            run()
            seconds.append(time.thread_time() - start)
        print(statistics.median(seconds), flush=True)


def environment(folder):
    """The Python of a virtual environment that has numpy and python-flint."""
    python = folder / "bin" / "python3"
    if not python.exists():
        venv.create(folder, with_pip=True)
    if subprocess.run([python, "-c", "import numpy, flint"], capture_output=True).returncode:
        subprocess.run(
            [python, "-m", "pip", "install", "--quiet", "numpy", "python-flint"], check=True
        )
    return python


# What the truth is compared with: other work, its N, the truth's precision and input type, goal:
# truth over other at most (other over truth at least, where the goal is a speed-up).
COMPARISONS = [
    ("numpy dense", 256, "fast", "BF16", 3.0, False),
    ("numpy dense", 256, "fast", "F32", 3.0, False),
    ("numpy dense", 256, "tight", "F32", None, False),
    ("numpy blocks", 4096, "fast", "BF16", 6.0, False),
    ("numpy blocks", 4096, "fast", "F32", 6.0, False),
    ("numpy blocks", 4096, "tight", "F32", None, False),
    ("Arb", 256, "fast", "BF16", 35.0, True),
    ("Arb", 256, "fast", "F32", 35.0, True),
    ("Arb", 256, "tight", "F32", None, True),
]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("bench", nargs="?", default=ROOT / "build/bench/truth_bench")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        return work()
    bench = pathlib.Path(options.bench).resolve()
    python = environment(bench.parent / "truth_ratios.venv")
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    one_thread = dict(os.environ, OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1")
    worker = subprocess.Popen(
        [python, __file__, "--worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=one_thread,
    )

    def of_other(name, n):
        worker.stdin.write(f"{name} {n}\n")
        worker.stdin.flush()
        return float(worker.stdout.readline())

    def of_truth(n, precision, inputs):
        size = [str(n), str(n), str(DIM), precision, inputs]
        return json.loads(subprocess.check_output([bench, *size]))["seconds"]

    truth, other = {}, {}
    for _ in range(options.rounds):
        for name, n, *how, _, _ in COMPARISONS:
            truth.setdefault((n, *how), []).append(of_truth(n, *how))
            other.setdefault((name, n), []).append(of_other(name, n))
    worker.stdin.close()
    worker.wait()

    heads = f"{'other work':14} {'N':>6} {'truth':>6} {'inputs':>6} {'other s':>9} {'truth s':>9}"
    print(f"{heads} {'ratio':>20} goal")
    for name, n, precision, inputs, goal, faster in COMPARISONS:
        a = statistics.median(truth[n, precision, inputs])
        b = statistics.median(other[name, n])
        ratio = b / a if faster else a / b
        said = f"{ratio:.1f} x {'faster' if faster else 'the other'}"
        aim = "" if goal is None else f"{'>=' if faster else '<='} {goal:g}"
        if goal is not None:
            aim += " reached" if (ratio >= goal) == faster else " missed"
        print(f"{name:14} {n:6} {precision:>6} {inputs:>6} {b:9.4f} {a:9.4f} {said:>20} {aim}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
