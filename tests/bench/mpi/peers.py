#!/usr/bin/env python3
"""The vector tile beside matrix products and beside the attention of other libraries.

    peers.py [--bench FOLDER] [--python PYTHON] [--sizes N...] [--widths D...] [--heads H]
             [--rounds R] [--accuracy]

One thread, pinned to one processor, seconds of that processor; in every round everything is run
once, one after the other, and a ratio is the median over the rounds of the ratio within a round.
Peers come from PyPI into an environment of the script's own (numpy, torch, onnxruntime, onnx);
those that are missing are left out. Rates count the visible pairs of a causal mask only.
"""
import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import venv

ROOT = pathlib.Path(__file__).resolve().parents[3]
PACKAGES = ["numpy", "torch", "onnxruntime", "onnx"]
GEMM = 1024  # rows of the square matrices
# What is compared: tile's pass, tile's type, the peer, the mask, the goal of peer time / tile time.
GOALS = [
    ("forward", "f32", "sgemm", "full", 0.95), ("forward", "f32", "sgemm", "causal", 0.90),
    ("forward", "f32", "SDPA", "full", 1.15), ("forward", "f32", "SDPA", "causal", 1.3),
    ("forward", "f32", "ONNX Runtime", "full", 1.0),
    ("forward", "bf16", "SDPA bf16", "full", 1.2), ("forward", "bf16", "SDPA bf16", "causal", 1.2),
    ("both", "f32", "SDPA both", "full", 1.05), ("both", "f32", "SDPA both", "causal", 1.2),
]


class Worker:
    """The peers, in a process of their own: commands come in lines, answers go out in lines."""

    def __init__(self):
        import numpy
        self.numpy, self.torch, self.works = numpy, None, {}
        try:
            import torch
            torch.set_num_threads(1)
            self.torch = torch
        except ImportError:
            pass

    def draw(self, path, heads, rows, width, deviation):
        """q, k, v, dout: normal numbers, rounded to bf16 so that every peer takes the same."""
        shape = (4, 1, int(heads), int(rows), int(width))
        numbers = self.numpy.random.default_rng(1).standard_normal(shape).astype(self.numpy.float32)
        numbers[0] *= float(deviation)
        bits = numbers.view(self.numpy.uint32)
        bits += 0x7fff + (bits >> 16 & 1)
        bits &= 0xffff0000
        numbers.tofile(path)
        return "ok"

    def data(self, path, heads, rows, width):
        shape = (4, 1, int(heads), int(rows), int(width))
        self.lists = self.numpy.fromfile(path, self.numpy.float32).reshape(shape)
        self.folder, self.works = pathlib.Path(path).parent, {}
        return "ok"

    def onnx_attention(self):
        """A model of one MultiHeadAttention, whose inputs are [B, N, H * D]."""
        import onnx
        import onnxruntime
        from onnx import helper as make
        _, _, heads, rows, width = self.lists.shape
        names = ["q", "k", "v", "o"]
        shape = [1, rows, heads * width]
        values = [make.make_tensor_value_info(n, onnx.TensorProto.FLOAT, shape)
                  for n in names]
        node = make.make_node("MultiHeadAttention", names[:3], ["o"], num_heads=heads,
                              domain="com.microsoft")
        model = make.make_model(
            make.make_graph([node], "g", values[:3], values[3:]), ir_version=9,
            opset_imports=[make.make_opsetid("", 17), make.make_opsetid("com.microsoft", 1)])
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        inputs = {n: self.numpy.ascontiguousarray(
            x[0].transpose(1, 0, 2).reshape(shape)) for n, x in zip(names[:3], self.lists)}
        runtime = onnxruntime.InferenceSession(model.SerializeToString(), options,
                                               providers=["CPUExecutionProvider"])
        return lambda: runtime.run(None, inputs)

    def build(self, name, mask):
        torch, causal = self.torch, mask == "causal"
        if name == "sgemm numpy":
            a = self.numpy.ones((GEMM, GEMM), self.numpy.float32)
            b = a.copy()
            return lambda: a @ b
        if name == "ONNX Runtime":
            return self.onnx_attention()
        if torch is None:
            raise ImportError("torch")
        if name == "sgemm torch":
            a, b = torch.ones(GEMM, GEMM), torch.ones(GEMM, GEMM)
            return lambda: a @ b
        kind = torch.bfloat16 if name == "SDPA bf16" else torch.float32
        q, k, v, dout = (torch.from_numpy(x).to(kind) for x in self.lists)
        attention = torch.nn.functional.scaled_dot_product_attention
        if name == "SDPA both":
            for x in (q, k, v):
                x.requires_grad_(True)

            def both():
                q.grad = k.grad = v.grad = None
                attention(q, k, v, is_causal=causal).backward(dout)
            return both

        def forward():
            with torch.no_grad():
                self.out = attention(q, k, v, is_causal=causal)
        return forward

    def run(self, mask, *name):
        import time
        key = mask, " ".join(name)
        try:
            if key not in self.works:
                self.works[key] = self.build(key[1], mask)
                self.works[key]()
        except ImportError as error:
            return f"absent {error}"
        begin = time.process_time()
        self.works[key]()
        return repr(time.process_time() - begin)

    def errors(self, path, mask, kind):
        """Root mean squares of tile, SDPA and rounded truth from binary64, on some rows."""
        numpy, torch = self.numpy, self.torch
        q, k, v = (x[0].astype(numpy.float64) for x in self.lists[:3])
        heads, rows, width = q.shape
        chosen = numpy.linspace(0, rows - 1, 128).astype(int)
        s = q[:, chosen] @ k.transpose(0, 2, 1) / numpy.sqrt(width)
        if mask == "causal":
            s[:, numpy.arange(rows)[None, :] > chosen[:, None]] = -numpy.inf
        p = numpy.exp(s - s.max(axis=-1, keepdims=True))
        truth = (p @ v) / p.sum(axis=-1, keepdims=True)
        tile = numpy.fromfile(path, numpy.float32, heads * rows * width).reshape(q.shape)[:, chosen]
        self.run(mask, *(["SDPA", "bf16"] if kind == "bf16" else ["SDPA"]))
        other = self.out.to(torch.float64).numpy()[0][:, chosen]

        def stored(x):
            return torch.from_numpy(numpy.array(x)).to(torch.bfloat16).to(torch.float64).numpy()
        floor = stored(truth) if kind == "bf16" else truth.astype(numpy.float32)
        if kind == "bf16":
            tile = stored(tile)
        def rms(x):
            return float(numpy.sqrt(numpy.mean((x - truth) ** 2)))
        return " ".join(repr(rms(x)) for x in (tile, other, floor))

    def serve(self):
        for line in sys.stdin:
            command, *words = line.split()
            print(getattr(self, command)(*words), flush=True)


class Pipe:
    def __init__(self, command):
        threads = dict(os.environ, OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1",
                       MKL_NUM_THREADS="1")
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, env=threads)

    def ask(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().strip()
        if not answer:
            sys.exit(f"peers: no answer to: {' '.join(map(str, words))}")
        return answer


def environment(folder):
    """The Python of a virtual environment with the peers."""
    python = folder / "bin" / "python3"
    if not python.exists():
        venv.create(folder, with_pip=True)
    if subprocess.run([python, "-c", "import numpy, torch, onnxruntime, onnx"],
                      capture_output=True).returncode:
        subprocess.run([python, "-m", "pip", "install", "--quiet", *PACKAGES], check=True)
    return python


def operations(heads, rows, width, mask):
    pairs = rows * (rows + 1) / 2 if mask == "causal" else rows * rows
    return 4.0 * heads * pairs * width


def one_round(tile, peers, size):
    """Seconds of everything once; sgemm as the faster of two, in seconds of the tile's work."""
    seconds = {}
    gemm = [float(answer) for name in ("numpy", "torch")
            if not (answer := peers.ask("run", "full", "sgemm", name)).startswith("absent")]
    for mask in ("full", "causal"):
        seconds["sgemm", mask] = min(gemm) * operations(*size, mask) / (2.0 * GEMM ** 3)
        for peer in ("SDPA", "SDPA bf16", "SDPA both", "ONNX Runtime"):
            if peer == "ONNX Runtime" and mask == "causal":
                continue
            answer = peers.ask("run", mask, peer)
            if not answer.startswith("absent"):
                seconds[peer, mask] = float(answer)
        for kind, wire in (("forward", "f32"), ("forward", "bf16"), ("both", "f32")):
            seconds[kind, wire, mask] = float(tile.ask("run", kind, mask, wire, 1))
    return seconds


def table_of(rounds, size):
    heads, rows, width = size
    lines = []
    for kind, wire, peer, mask, goal in GOALS:
        if (peer, mask) not in rounds[0]:
            continue
        ratios = [r[peer, mask] / r[kind, wire, mask] for r in rounds]
        ratio = statistics.median(ratios)
        work = operations(*size, mask) * (3.5 if kind == "both" else 1)
        rate = work / statistics.median(r[kind, wire, mask] for r in rounds) * 1e-9
        lines.append(f"| {rows} | {width} | {mask} | {kind}, {wire} | {rate:.1f} | {peer} | "
                     f"{ratio:.2f} | {min(ratios):.2f} to {max(ratios):.2f} | {goal:.2f} | "
                     f"{'reached' if ratio >= goal else 'missed'} |")
    return lines


def accuracy(tile, peers, path, heads):
    lines = ["| inputs | N | mask | type | tile, rms | SDPA, rms | tile / SDPA | goal |"
             " tile / floor | goal |", "|---|---|---|---|---|---|---|---|---|---|"]
    for name, deviation, goal in (("randn", 1.0, 1.5), ("sharp (q x 8)", 8.0, 1.2)):
        for rows in (1024, 4096):
            peers.ask("draw", path, heads, rows, 64, deviation)
            for other in (tile, peers):
                other.ask("data", path, heads, rows, 64)
            for mask in ("full", "causal"):
                for kind in ("f32", "bf16"):
                    tile.ask("run", "forward", mask, kind, 1)
                    tile.ask("save", path.with_suffix(".out"))
                    mine, sdpa, floor = map(float, peers.ask(
                        "errors", path.with_suffix(".out"), mask, kind).split())
                    if kind == "bf16":
                        aims = f" | {mine / floor:.3f} | 1.05"
                        to_sdpa = "–"
                    else:
                        aims, to_sdpa = f" | {mine / floor:.2f} | –", f"{goal}"
                    lines.append(f"| {name} | {rows} | {mask} | {kind} | {mine:.3g} | {sdpa:.3g} | "
                                 f"{mine / sdpa:.2f} | {to_sdpa}{aims} |")
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bench", type=pathlib.Path, default=ROOT / "build/bench")
    parser.add_argument("--python", type=pathlib.Path, help="one that has the peers already")
    parser.add_argument("--sizes", type=int, nargs="+", default=[2048])
    parser.add_argument("--widths", type=int, nargs="+", default=[64, 128])
    parser.add_argument("--heads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--accuracy", action="store_true", help="errors in place of times")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        return Worker().serve()
    bench = options.bench.resolve()
    python = options.python or environment(bench / "peers.venv")
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    tile, peers = Pipe([bench / "mpi_tile_server"]), Pipe([python, __file__, "--worker"])
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "numbers"
        if options.accuracy:
            print("\n".join(accuracy(tile, peers, path, options.heads)))
            return
        print("| N | D | mask | tile | GF/s | peer | peer's time / tile's | in single rounds |"
              " goal | |\n|---|---|---|---|---|---|---|---|---|---|---|")
        for rows in options.sizes:
            for width in options.widths:
                size = options.heads, rows, width
                peers.ask("draw", path, *size, 1.0)
                for other in (tile, peers):
                    other.ask("data", path, *size)
                one_round(tile, peers, size)  # everybody warms up
                rounds = [one_round(tile, peers, size) for _ in range(options.rounds)]
                print("\n".join(table_of(rounds, size)), flush=True)


if __name__ == "__main__":
    main()
