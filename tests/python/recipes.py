"""The examples of docs/recipes/, one function each; test_recipes.py runs those whose packages are
there."""

import ml_dtypes
import numpy

import ringproof


def attention(q, k, v, causal=False, offset=0):
    """out and lse in binary32, [B, H, N, D]; query i sees keys up to i + offset."""
    q, k, v = (array.astype(numpy.float32) for array in (q, k, v))
    k, v = (array.repeat(q.shape[1] // array.shape[1], axis=1) for array in (k, v))
    scores = q @ k.swapaxes(2, 3) * numpy.float32(q.shape[3] ** -0.5)
    if causal:
        seen = numpy.arange(k.shape[2]) <= numpy.arange(q.shape[2])[:, None] + offset
        scores = numpy.where(seen, scores, numpy.float32(-numpy.inf))
    top = scores.max(axis=3, keepdims=True)
    weights = numpy.exp(scores - top)
    total = weights.sum(axis=3, keepdims=True)
    return weights @ v / total, (top + numpy.log(total))[..., 0]


def some(*shape, dtype=numpy.float32):
    return numpy.random.default_rng(len(shape) + shape[-1]).standard_normal(shape).astype(dtype)


def flash_test():
    def flash_attn_func(q, k, v, causal):  # stands for the kernel: [B, N, H, D]
        out, lse = attention(*(array.swapaxes(1, 2) for array in (q, k, v)), causal=causal)
        return out.swapaxes(1, 2).astype(q.dtype), lse

    q, k, v = (some(2, 48, heads, 16, dtype=ml_dtypes.bfloat16) for heads in (4, 2, 2))
    # [flash-test]
    out, lse = flash_attn_func(q, k, v, causal=True)
    ringproof.assert_certified(q, k, v, out=out, lse=lse, layout="bnhd", causal="bottom_right",
                               contract="bf16-flash")
    # [/flash-test]


def cache_of_8_bits():
    q = some(1, 4, 3, 32)
    keys, values = some(1, 2, 64, 32), some(1, 2, 64, 32) + 1
    # [cache]
    def quantised(rows, block=16):  # [B, Hkv, N, D]: one factor for 16 tokens of a head
        b, h, n, d = rows.shape
        largest = numpy.abs(rows.reshape(b, h, n // block, block * d)).max(axis=3)
        scale = (largest / 448).astype(numpy.float32)[..., None]  # [B, Hkv, N / 16, 1]
        return (rows / scale.repeat(block, axis=2)).astype(ml_dtypes.float8_e4m3fn), scale

    k, k_scale = quantised(keys)
    v, v_scale = quantised(values)
    # [/cache]
    out, lse = attention(q, k.astype(numpy.float32) * k_scale.repeat(16, axis=2),
                         v.astype(numpy.float32) * v_scale.repeat(16, axis=2))
    # [cache-check]
    contract = {"base": "fp32", "score": {"scale_roundings": 3}, "finish": {"roundings": 3}}
    report = ringproof.check(q, k, v, k_scale=k_scale, v_scale=v_scale, out=out, lse=lse,
                             contract=contract)
    # [/cache-check]
    wrong, _ = attention(q, k.astype(numpy.float32) * k_scale.repeat(16, axis=2)[:, :, ::-1],
                         v.astype(numpy.float32) * v_scale.repeat(16, axis=2))
    return report, ringproof.check(q, k, v, k_scale=k_scale, v_scale=v_scale, out=wrong,
                                   contract=contract)


def ring_shards(folder):
    """Four ranks with zigzag shards; each knows its own rows alone."""
    ranks, rows = 4, 32
    whole = [some(1, 2, rows, 8) + turn for turn in (0, 1, 2)]
    out_of_all, lse_of_all = attention(*whole, causal=True)
    piece = rows // (2 * ranks)
    for rank in range(ranks):
        mine = numpy.concatenate([numpy.arange(start * piece, (start + 1) * piece)
                                  for start in (rank, 2 * ranks - 1 - rank)])
        q, k, v = (tensor[:, :, mine] for tensor in whole)
        out, lse = out_of_all[:, :, mine], lse_of_all[:, :, mine]
        # [shard]
        ringproof.write(f"{folder}/rank{rank}.safetensors", q=q, k=k, v=v, out=out, lse=lse,
                        positions_q=mine, positions_k=mine, causal="top_left",
                        contract="fp32", ranks=4, ring={"layout": "zigzag", "order": "down"})
        # [/shard]


def flashinfer_call(folder, save):
    # [flashinfer]
    from safetensors.numpy import load_file
    given = load_file(f"{folder}/inputs.safetensors")
    answer = load_file(f"{folder}/outputs.safetensors")
    # single_prefill_with_kv_cache(q, k, v, causal=True): [N, H, D], packed, no batch axis
    ringproof.write(save, q=given["arg_0"], k=given["arg_1"], v=given["arg_2"],
                    out=answer["result"], layout="nhd", causal="bottom_right",
                    contract="fp16-flash")
    # [/flashinfer]


def torch_sdpa():
    # [torch]
    import torch
    from torch.nn.functional import scaled_dot_product_attention
    torch.manual_seed(0)
    q, k, v = (torch.randn(1, 4, 128, 64, dtype=torch.bfloat16) for _ in range(3))
    out = scaled_dot_product_attention(q, k, v, is_causal=True)
    report = ringproof.check(q, k, v, out=out, causal="top_left",
                             contract="bf16-flash+exp13+block512+gacc64")
    # [/torch]
    return report


def triton_kernel():
    # [triton]
    import os
    os.environ["TRITON_INTERPRET"] = "1"  # before triton is imported
    import torch
    from fla.ops.attn.parallel import parallel_attn
    torch.manual_seed(0)
    q, k, v = (torch.randn(1, 32, heads, 16, requires_grad=True) for heads in (4, 2, 2))
    out = parallel_attn(q, k, v)
    dout = torch.randn_like(out)
    dq, dk, dv = torch.autograd.grad(out, (q, k, v), dout)
    report = ringproof.check(q, k, v, out=out, dout=dout, dq=dq, dk=dk, dv=dv, layout="bnhd",
                             causal="top_left", contract="fp32-gpu")
    # [/triton]
    return report


def jax_attention():
    # [jax]
    import jax
    keys = jax.random.split(jax.random.key(0), 3)
    q, k, v = (jax.random.normal(key, (1, 128, 4, 64)) for key in keys)
    out = jax.nn.dot_product_attention(q, k, v, is_causal=True)
    report = ringproof.check(q, k, v, out=out, layout="bnhd", causal="top_left",
                             contract="fp32-simd")
    # [/jax]
    return report
