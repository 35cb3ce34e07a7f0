#!/usr/bin/env python3
"""JAX's dot_product_attention under the suite, from inside Python: kernel.py [LAW...]

Exit status: 0 PASS, 1 FAIL, as `ringproof suite`.
"""

import sys

import jax.numpy as jnp
import ringproof
from jax.nn import dot_product_attention

# What the CPU's code rounds: binary32 throughout, sums in any order, vector code for exp and log.
CONTRACT = "fp32-simd"
TAKEN = {"q", "k", "v", "bias", "mask", "scale", "causal", "window"}


def kernel(problem):
    """out and lse of one problem; q is [B, H, Nq, D], JAX wants [B, N, H, D]."""
    given = dict(problem.arguments)
    causal, window = given.get("causal", "none"), given.get("window", (-1, -1))
    if given.keys() - TAKEN or causal == "bottom_right" or given["k"].shape[2] == 0:
        raise NotImplementedError
    if given["v"].shape[3] != given["k"].shape[3] or min(window) < 0 <= max(window):
        raise NotImplementedError  # a window with one end
    q, k, v = (jnp.swapaxes(jnp.asarray(given[name]), 1, 2) for name in "qkv")
    extra = {name: jnp.asarray(given[name]) for name in ("bias", "mask") if name in given}
    scores = (q.shape[0], q.shape[2], q.shape[1], k.shape[1])
    if any(name in given and given[name].shape[1:3] != scores[1:3] for name in extra):
        extra = {name: jnp.broadcast_to(array, scores) for name, array in extra.items()}
    out, lse = dot_product_attention(
        q, k, v, **extra, scale=given.get("scale"), is_causal=causal == "top_left",
        local_window_size=tuple(window) if min(window) >= 0 else None, return_residual=True)
    return {"out": jnp.swapaxes(out, 1, 2), "lse": jnp.swapaxes(lse, 1, 2)}


if __name__ == "__main__":
    result = ringproof.suite(kernel, CONTRACT, only=sys.argv[1:] or None, count=1,
                             timeout=300, failures="")
    print(result)
    sys.exit(0 if result.passed else 1)
