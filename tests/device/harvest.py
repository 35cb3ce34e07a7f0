#!/usr/bin/env python3
"""Answers of the attention implementations that can be imported here, before the judge.

    harvest.py --programs FOLDER --out FOLDER

For each: out (and LSE where it is given) on a small seeded input, kept as a case file, its verdict
under the preset that is declared for it, and a time on a larger input. The last line of the output
is JSON. What cannot be imported or refuses the input is skipped by name.
"""

import argparse
import importlib
import json
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import cases  # noqa: E402

HEADS, TOKENS, WIDTH, LONG = 2, 129, 64, 4096


def torch_backends(torch, device):
    """name -> function of (q, k, v, causal)."""
    functional = torch.nn.functional
    attention = importlib.import_module("torch.nn.attention")

    def sdpa(backend):
        def call(q, k, v, causal):
            with attention.sdpa_kernel([backend]):
                return functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
        return call

    names = {"math": "MATH", "flash": "FLASH_ATTENTION", "efficient": "EFFICIENT_ATTENTION",
             "cudnn": "CUDNN_ATTENTION"}
    found = {f"torch sdpa {name}": sdpa(getattr(attention.SDPBackend, word))
             for name, word in names.items() if hasattr(attention.SDPBackend, word)}
    try:
        flex = importlib.import_module("torch.nn.attention.flex_attention")
        compiled = torch.compile(flex.flex_attention)

        def call_flex(q, k, v, causal):
            rule = (lambda s, b, h, i, j: torch.where(i >= j, s, -float("inf"))) if causal else None
            return compiled(q, k, v, score_mod=rule)
        if device == "cuda":
            found["torch flex_attention"] = call_flex
    except (ImportError, AttributeError):
        pass
    return found


class Torch:
    """PyTorch on the GPU, or on the processor if there is none."""

    contract = "bf16-flash"

    def __init__(self):
        self.torch = importlib.import_module("torch")
        self.device = "cuda" if self.torch.cuda.is_available() else "cpu"
        self.kernels = torch_backends(self.torch, self.device)

    def tensor(self, shape, numbers):
        made = self.torch.tensor(numbers, dtype=self.torch.float32).reshape(shape)
        return made.to(self.torch.bfloat16).to(self.device)

    def random(self, shape):
        return self.torch.randn(shape, dtype=self.torch.bfloat16, device=self.device)

    def finish(self):
        if self.device == "cuda":
            self.torch.cuda.synchronize()

    def numbers(self, tensor):
        return tensor.float().flatten().tolist()


class Jax:
    """JAX's own attention, compiled by XLA."""

    contract = "bf16-p16"

    def __init__(self):
        self.jax = importlib.import_module("jax")
        self.device = self.jax.devices()[0].platform

        def attend(q, k, v, causal):
            swap = [x.swapaxes(1, 2) for x in (q, k, v)]
            return self.jax.nn.dot_product_attention(*swap, is_causal=causal).swapaxes(1, 2)
        self.kernels = {"jax dot_product_attention": self.jax.jit(attend, static_argnums=3)}

    def tensor(self, shape, numbers):
        return self.jax.numpy.array(numbers).reshape(shape).astype("bfloat16")

    def random(self, shape):
        key = self.jax.random.key(1)
        return self.jax.random.normal(key, shape).astype("bfloat16")

    def finish(self):
        self.jax.effects_barrier()

    def numbers(self, tensor):
        return [float(x) for x in tensor.astype("float32").ravel()]


def milliseconds(library, call):
    """The best of five, on a long input; None on a processor, where it would take minutes."""
    if library.device not in ("cuda", "gpu"):
        return None
    q, k, v = (library.random((1, 16, LONG, WIDTH)) for _ in range(3))
    best = float("inf")
    for _ in range(6):
        library.finish()
        begun = time.perf_counter()
        out = call(q, k, v, True)
        getattr(out, "block_until_ready", lambda: None)()
        library.finish()
        best = min(best, time.perf_counter() - begun)
    return round(1000 * best, 3)


def judged(library, name, call, options):
    """One implementation's answer as a case file, and the judge's word."""
    tensors, spec = cases.problem("BF16", HEADS, HEADS, TOKENS, TOKENS, WIDTH, 7,
                                  {"causal": "top_left"})
    inputs = [library.tensor(tensors[x][1], tensors[x][2]) for x in "qkv"]
    out = call(*inputs, True)
    spec["contract"] = library.contract
    spec["about"] = {"kernel": name, "device": library.device}
    tensors["out"] = ("BF16", [1, HEADS, TOKENS, WIDTH], library.numbers(out))
    path = options.out / (name.replace(" ", "_") + ".bf16.safetensors")
    cases.write(path, tensors, spec)
    status = subprocess.run([options.programs / "ringproof", "check", path],
                            capture_output=True).returncode
    verdict = {0: "PASS", 1: "FAIL", 3: "UNDECIDED"}.get(status, f"exit {status}")
    return {"name": name, "device": library.device, "contract": library.contract,
            "verdict": verdict, "file": path.name, "milliseconds": milliseconds(library, call)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--programs", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    peers, skipped = [], []
    for library_type in (Torch, Jax):
        try:
            library = library_type()
        except Exception as error:  # whatever a broken installation raises
            skipped.append(f"{library_type.__name__.lower()}: {error}")
            continue
        for name, call in library.kernels.items():
            try:
                peers.append(judged(library, name, call, options))
            except Exception as error:  # a back end that does not take this input
                skipped.append(f"{name}: {str(error).splitlines()[0][:160]}")
    print(json.dumps({"peers": peers, "skipped": skipped}))


if __name__ == "__main__":
    main()
