#!/usr/bin/env python3
"""Answers of the attention implementations that can be imported here, before the judge.

    harvest.py --programs FOLDER --out FOLDER [--seconds N]

For each: out, LSE and gradients, where it gives them, on a small seeded input, kept as a case file;
the verdict under the contract declared for it; and times on the inputs of ringproof-cuda-bench.
OUT/harvest.json grows with every implementation, so that one that never ends takes no other along.
What cannot be imported, refuses the input or comes too late is skipped by name.
"""

import argparse
import collections
import importlib
import json
import os
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import cases  # noqa: E402

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # JAX leaves room for the others

HEADS, TOKENS, WIDTH = 2, 192, 64
LONG_HEADS, LONG, REPEATS = 16, 4096, 10

# call(q, k, v, causal) gives out; lse, if not None, is called like it.
Implementation = collections.namedtuple("Implementation", "call lse contract")

# PyTorch's "math" rounds q and k once more, when it scales them before their product.
MATH_CONTRACT = {"base": "bf16-io", "inputs": {"load_u": "0x1p-24"},
                 "score": {"scale_const_u": "0x1p-22"}}
# On a processor its flash back end has a short exponential and long blocks.
FLASH_CONTRACT = {"cpu": "bf16-flash+exp13+block512+gacc64", "cuda": "bf16-flash"}


def torch_lse(torch, device):
    """Back end -> function that gives its LSE, which only the operators beneath SDPA return."""
    operators = torch.ops.aten
    if device == "cpu":
        return {"flash": lambda q, k, v, causal:
                operators._scaled_dot_product_flash_attention_for_cpu(q, k, v, 0.0, causal)[1]}
    return {
        "flash": lambda q, k, v, causal:
            operators._scaled_dot_product_flash_attention(q, k, v, 0.0, causal)[1],
        "efficient": lambda q, k, v, causal:
            operators._scaled_dot_product_efficient_attention(
                q, k, v, None, True, 0.0, causal)[1][..., :q.shape[2]],  # rows are padded
        "cudnn": lambda q, k, v, causal:
            operators._scaled_dot_product_cudnn_attention(q, k, v, None, True, 0.0, causal)[1],
    }


def torch_sdpa(torch, device):
    functional = torch.nn.functional
    attention = importlib.import_module("torch.nn.attention")
    lse = torch_lse(torch, device)

    def sdpa(backend):
        def call(q, k, v, causal):
            with attention.sdpa_kernel([backend]):
                return functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
        return call

    names = {"math": "MATH", "flash": "FLASH_ATTENTION", "efficient": "EFFICIENT_ATTENTION",
             "cudnn": "CUDNN_ATTENTION"}
    return {f"torch sdpa {name}": Implementation(sdpa(getattr(attention.SDPBackend, word)),
                                                 lse.get(name),
                                                 MATH_CONTRACT if name == "math"
                                                 else FLASH_CONTRACT[device])
            for name, word in names.items() if hasattr(attention.SDPBackend, word)}


def torch_flex(torch):
    """FlexAttention, compiled; causal blocks are left out, as its documentation advises."""
    flex = importlib.import_module("torch.nn.attention.flex_attention")
    compiled, masks = torch.compile(flex.flex_attention), {}

    def block_mask(rows, causal):
        if causal and rows not in masks:
            masks[rows] = flex.create_block_mask(lambda b, h, i, j: i >= j, None, None, rows, rows,
                                                 device="cuda")
        return masks.get(rows) if causal else None

    def call(q, k, v, causal):
        return compiled(q, k, v, block_mask=block_mask(q.shape[2], causal))

    def lse(q, k, v, causal):
        return compiled(q, k, v, block_mask=block_mask(q.shape[2], causal), return_lse=True)[1]

    return {"torch flex_attention": Implementation(call, lse, "bf16-flash")}


def triton_kernels():
    """flash-linear-attention's softmax attention, in Triton; causal, its axes are [B, N, H, D]."""
    attend = importlib.import_module("fla.ops.attn.parallel").parallel_attn

    def call(q, k, v, causal):
        if not causal:
            raise NotImplementedError("causal masks alone")
        return attend(*(x.transpose(1, 2).contiguous() for x in (q, k, v))).transpose(1, 2)
    return {"triton fla parallel_attn": Implementation(call, None, "bf16-flash")}


class Torch:
    """PyTorch and what stands on it, on the GPU, or on the processor if there is none."""

    def __init__(self, skipped):
        self.torch = importlib.import_module("torch")
        self.device = "cuda" if self.torch.cuda.is_available() else "cpu"
        self.kernels = torch_sdpa(self.torch, self.device)
        if self.device == "cpu":
            skipped.append("torch flex_attention, triton: no GPU")
            return
        for name, make in (("torch flex_attention", lambda: torch_flex(self.torch)),
                           ("triton", triton_kernels)):
            try:
                self.kernels |= make()
            except Exception as error:  # whatever a broken installation raises
                skipped.append(f"{name}: {error}")

    def tensor(self, shape, numbers):
        made = self.torch.tensor(numbers, dtype=self.torch.float32).reshape(shape)
        return made.to(self.torch.bfloat16).to(self.device)

    def random(self, shape):
        return self.torch.randn(shape, dtype=self.torch.bfloat16, device=self.device)

    def gradients(self, call, inputs, dout):
        leaves = [x.clone().requires_grad_() for x in inputs]
        return self.torch.autograd.grad(call(*leaves, True), leaves, dout)

    def finish(self, _):
        if self.device == "cuda":
            self.torch.cuda.synchronize()

    def numbers(self, tensor):
        return tensor.detach().float().flatten().tolist()


class Jax:
    """JAX's own attention: XLA's, and cuDNN's on a GPU."""

    def __init__(self, skipped):
        self.jax = importlib.import_module("jax")
        self.device = self.jax.devices()[0].platform
        self.kernels = {"jax dot_product_attention xla": self.implementation("xla", "bf16-p16")}
        if self.device == "gpu":
            self.kernels["jax dot_product_attention cudnn"] = self.implementation("cudnn",
                                                                                  "bf16-flash")

    def implementation(self, name, contract):
        def attend(q, k, v, causal, **more):
            swap = [x.swapaxes(1, 2) for x in (q, k, v)]
            return self.jax.nn.dot_product_attention(*swap, is_causal=causal, implementation=name,
                                                     **more)

        def call(q, k, v, causal):
            return attend(q, k, v, causal).swapaxes(1, 2)

        def lse(q, k, v, causal):
            return attend(q, k, v, causal, return_residual=True)[1].swapaxes(1, 2)
        return Implementation(*(self.jax.jit(f, static_argnums=3) for f in (call, lse)), contract)

    def tensor(self, shape, numbers):
        return self.jax.numpy.array(numbers).reshape(shape).astype("bfloat16")

    def random(self, shape):
        return self.jax.random.normal(self.jax.random.key(1), shape).astype("bfloat16")

    def gradients(self, call, inputs, dout):
        return self.jax.vjp(lambda q, k, v: call(q, k, v, True), *inputs)[1](dout)

    def finish(self, out):
        out.block_until_ready()

    def numbers(self, tensor):
        return tensor.astype("float32").ravel().tolist()


class Harvest:
    """What has come in so far."""

    def __init__(self, options):
        self.options, self.end = options, time.monotonic() + options.seconds
        self.peers, self.skipped = [], []

    def write(self):
        text = json.dumps({"peers": self.peers, "skipped": self.skipped}, indent=1)
        (self.options.out / "harvest.json").write_text(text + "\n", encoding="utf-8")

    def attempt(self, what, action):
        """The action's result; None, and a line, if there was no time or it failed."""
        if time.monotonic() > self.end:
            self.skipped.append(f"{what}: no time")
            return None
        try:
            return action()
        except Exception as error:  # a back end that does not take this input
            lines = str(error).splitlines() or [type(error).__name__]
            self.skipped.append(f"{what}: {lines[0][:160]}")
            return None

    def judge(self, library, name, made):
        """One implementation's answers as a case file, and the judge's word."""
        tensors, spec = cases.problem("BF16", HEADS, HEADS, TOKENS, TOKENS, WIDTH, 7,
                                      {"causal": "top_left"}, dout=True)
        *inputs, dout = (library.tensor(tensors[x][1], tensors[x][2])
                         for x in ("q", "k", "v", "dout"))
        shape = tensors["q"][1]
        out = self.attempt(name, lambda: library.numbers(made.call(*inputs, True)))
        if out is None:
            return
        lse = made.lse and self.attempt(f"{name}, lse", lambda: made.lse(*inputs, True))
        gradients = self.attempt(f"{name}, gradients", lambda: [
            library.numbers(x) for x in library.gradients(made.call, inputs, dout)])
        tensors["out"] = ("BF16", shape, out)
        if lse is not None:
            dtype = "BF16" if "bfloat16" in str(lse.dtype) else "F32"
            tensors["lse"] = (dtype, shape[:3], library.numbers(lse))
        if gradients:
            tensors |= {x: ("BF16", shape, g) for x, g in zip(("dq", "dk", "dv"), gradients)}
        spec["contract"] = made.contract
        spec["about"] = {"kernel": name, "device": library.device}
        path = self.options.out / (name.replace(" ", "_") + ".bf16.safetensors")
        cases.write(path, tensors, spec)
        done = subprocess.run([self.options.programs / "ringproof", "check", path],
                              capture_output=True, text=True)
        verdict = cases.VERDICTS.get(done.returncode, f"exit {done.returncode}")
        answers = [x for x in ("out", "lse", "dq", "dk", "dv") if x in tensors]
        self.peers.append({"name": name, "device": library.device, "contract": made.contract,
                           "answers": answers, "verdict": verdict, "file": path.name, "times": []})
        if verdict not in cases.ACCEPTED:
            self.peers[-1]["said"] = (done.stdout + done.stderr)[-1500:]

    def time(self, library, made, peer):
        """The best of five means, on a long input; none on a processor: it would take minutes."""
        for width, causal in ((64, True), (128, True), (64, False), (128, False)):
            q, k, v = (library.random((1, LONG_HEADS, LONG, width)) for _ in range(3))
            library.finish(made.call(q, k, v, causal))  # the first call compiles
            best = float("inf")
            for _ in range(5):
                begun = time.perf_counter()
                for _ in range(REPEATS):
                    out = made.call(q, k, v, causal)
                library.finish(out)
                best = min(best, (time.perf_counter() - begun) / REPEATS)
            peer["times"].append({"width": width, "queries": LONG,
                                  "causal": "causal" if causal else "full",
                                  "milliseconds": round(1000 * best, 4)})
            if time.monotonic() > self.end:
                return

    def run(self):
        libraries = [self.attempt(kind.__name__.lower(), lambda: kind(self.skipped))
                     for kind in (Torch, Jax)]
        judged = []
        for library in filter(None, libraries):
            for name, made in library.kernels.items():
                before = len(self.peers)
                self.attempt(name, lambda: self.judge(library, name, made))
                judged += [(library, made, peer) for peer in self.peers[before:]]
                self.write()
        for library, made, peer in judged:
            if library.device in ("cuda", "gpu"):
                self.attempt(f"{peer['name']}, times", lambda: self.time(library, made, peer))
                self.write()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--programs", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--seconds", type=float, default=150, help="nothing is begun after them")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    harvest = Harvest(options)
    harvest.write()
    harvest.run()
    harvest.write()


if __name__ == "__main__":
    main()
