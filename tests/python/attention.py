"""Attention in NumPy for the tests: a conforming float32 kernel and its mistakes."""

import numpy


def tensors(seed=1, heads=2, kv_heads=2, queries=9, keys=9, dim=8, dtype=numpy.float32):
    """q [1, H, Nq, D], k and v [1, Hkv, Nk, D] of normal numbers."""
    random = numpy.random.default_rng(seed)
    shapes = ((heads, queries), (kv_heads, keys), (kv_heads, keys))
    return [random.standard_normal((1, h, n, dim)).astype(dtype) for h, n in shapes]


@numpy.errstate(invalid="ignore")  # of what masked keys hold
def attention(q, k, v, causal=False, scale=None):
    """(out, lse) in float32; q [B, H, Nq, D], k and v [B, Hkv, Nk, D]; causal is top-left."""
    q, k, v = (numpy.asarray(array, dtype=numpy.float32) for array in (q, k, v))
    group = q.shape[1] // k.shape[1]
    k, v = k.repeat(group, axis=1), v.repeat(group, axis=1)
    scale = numpy.float32(q.shape[3] ** -0.5 if scale is None else scale)
    scores = scale * (q @ k.swapaxes(2, 3))
    if causal:
        scores[..., ~numpy.tri(*scores.shape[2:], dtype=bool)] = -numpy.inf
    top = scores.max(axis=3, keepdims=True)
    weights = numpy.exp(scores - top)
    total = weights.sum(axis=3, keepdims=True)
    products = weights[..., None] * v[:, :, None]
    # What a masked key holds may be anything, and zero times anything is not always zero.
    out = numpy.where(weights[..., None] > 0, products, 0).sum(axis=3) / total
    return out, (top + numpy.log(total))[..., 0]


def gradients(q, k, v, dout):
    """(dq, dk, dv) of plain attention in float32; no groups."""
    scale = numpy.float32(q.shape[3] ** -0.5)
    scores = scale * (q @ k.swapaxes(2, 3))
    weights = numpy.exp(scores - scores.max(axis=3, keepdims=True))
    weights /= weights.sum(axis=3, keepdims=True)
    upstream = dout @ v.swapaxes(2, 3)
    inner = weights * (upstream - (weights * upstream).sum(axis=3, keepdims=True))
    return (scale * (inner @ k), scale * (inner.swapaxes(2, 3) @ q),
            weights.swapaxes(2, 3) @ dout)
