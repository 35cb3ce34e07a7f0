"""Triton kernels without a graphics card: TRITON_INTERPRET=1 runs them in NumPy, block by block."""

import os

os.environ["TRITON_INTERPRET"] = "1"  # before triton is imported

import kernels_torch

MOST_PAIRS = 1 << 13  # of a query and a key, in all heads; the interpreter is slow


def fla_parallel_attention(given):
    """flash-linear-attention's softmax attention, which is causal; its axes are [B, N, H, D]."""
    from fla.ops.attn.parallel import parallel_attn
    b, heads, rows, _ = given["q"].shape
    if not given.get("causal"):
        raise NotImplementedError("causal masks alone")
    if b * heads * rows * rows > MOST_PAIRS:
        raise NotImplementedError("too long for the interpreter")
    sinks = kernels_torch.tensor(given["sinks"]).float() if "sinks" in given else None

    def call(q, k, v):
        return parallel_attn(*(part.transpose(1, 2).contiguous() for part in (q, k, v)),
                             scale=given["scale"], sink_bias=sinks).transpose(1, 2)
    return kernels_torch.with_gradients(call, given)
