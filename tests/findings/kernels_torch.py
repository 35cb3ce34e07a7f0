"""PyTorch's attention functions, and those of packages that stand on it, on a processor.

Every function takes arrays [B, H, N, D] and returns {"out", "lse", "dq", "dk", "dv"} or a part.
"""

import types

import ml_dtypes
import numpy
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

torch.set_num_threads(1)  # one order of sums on every machine with these vector units


def tensor(array):
    if array.dtype == ml_dtypes.bfloat16:
        return torch.from_numpy(array.view(numpy.int16).copy()).view(torch.bfloat16)
    return torch.from_numpy(numpy.array(array))


def with_gradients(function, given):
    """out of `function(q, k, v)` and the gradients that its backward pass gives for dout."""
    inputs = [tensor(given[name]).requires_grad_() for name in "qkv"]
    out = function(*inputs)
    answers = {"out": out}
    if "dout" in given:
        gradients = torch.autograd.grad(out, inputs, tensor(given["dout"]))
        answers |= dict(zip(("dq", "dk", "dv"), gradients))
    return answers


def added(given, dtype, masked):
    """Bias and mask as one addend of the scores, or None."""
    addend = tensor(given["bias"]) if "bias" in given else None
    if "mask" in given:
        addend = torch.zeros((), dtype=dtype) if addend is None else addend
        addend = torch.where(tensor(given["mask"]), addend, masked)
    return addend


def _sdpa(given, backend):
    def call(q, k, v):
        if "bias" in given:
            mask = added(given, q.dtype, -torch.inf)
        else:
            mask = tensor(given["mask"]) if "mask" in given else None
        with sdpa_kernel(backend):
            return torch.nn.functional.scaled_dot_product_attention(
                q, k, v, attn_mask=mask, is_causal=given.get("causal", False),
                scale=given["scale"], enable_gqa=q.shape[1] != k.shape[1])
    return with_gradients(call, given)


def sdpa_math(given):
    return _sdpa(given, SDPBackend.MATH)


def sdpa_flash(given):
    answers = _sdpa(given, SDPBackend.FLASH_ATTENTION)
    if "mask" not in given and "bias" not in given and given["q"].shape[1] == given["k"].shape[1]:
        answers["lse"] = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
            *(tensor(given[name]) for name in "qkv"), 0.0, given.get("causal", False),
            scale=given["scale"])[1]
    return answers


def multihead_attention(given):
    """The module with identities for its projections: products by 1 and sums with 0 are exact."""
    b, heads, rows, width = given["q"].shape
    module = torch.nn.MultiheadAttention(heads * width, heads, batch_first=True)
    with torch.no_grad():
        module.in_proj_weight.copy_(torch.eye(heads * width).repeat(3, 1))
        module.out_proj.weight.copy_(torch.eye(heads * width))
    addend = added(given, torch.float32, -torch.inf)
    if given.get("causal"):
        addend = torch.full((rows, rows), -torch.inf).triu(1)
    elif addend is not None:
        addend = addend.expand(b, heads, rows, given["k"].shape[2]).flatten(0, 1)

    def call(q, k, v):
        packed = [part.transpose(1, 2).flatten(2) for part in (q, k, v)]
        out, _ = module(*packed, attn_mask=addend, need_weights=True)
        return out.unflatten(2, (heads, width)).transpose(1, 2)
    return with_gradients(call, given)


def flex(given):
    """FlexAttention as it runs without torch.compile: no backward pass on a processor."""
    from torch.nn.attention.flex_attention import flex_attention
    shape = (*given["q"].shape[:3], given["k"].shape[2])
    bias = tensor(given["bias"]).expand(shape) if "bias" in given else None
    mask = tensor(given["mask"]).expand(shape) if "mask" in given else None

    def score_mod(score, b, h, i, j):
        if "softcap" in given:
            score = given["softcap"] * torch.tanh(score / given["softcap"])
        score = score if bias is None else score + bias[b, h, i, j]
        score = score if mask is None else torch.where(mask[b, h, i, j], score, -torch.inf)
        return torch.where(i >= j, score, -torch.inf) if given.get("causal") else score

    q, k, v = (tensor(given[name]) for name in "qkv")
    return {"out": flex_attention(q, k, v, score_mod=score_mod, scale=given["scale"],
                                  enable_gqa=q.shape[1] != k.shape[1])}


def _transformers(forward, given, **parts):
    addend = added(given, tensor(given["q"]).dtype, torch.finfo(tensor(given["q"]).dtype).min)
    groups = given["q"].shape[1] // given["k"].shape[1]
    module = types.SimpleNamespace(num_key_value_groups=groups, training=False, **parts)
    return with_gradients(
        lambda q, k, v: forward(module, q, k, v, addend, given["scale"])[0].transpose(1, 2), given)


def llama_eager(given):
    from transformers.models.llama.modeling_llama import eager_attention_forward
    return _transformers(eager_attention_forward, given)


def gpt_oss_eager(given):
    from transformers.models.gpt_oss.modeling_gpt_oss import eager_attention_forward
    sinks = given.get("sinks", numpy.full(given["q"].shape[1], -numpy.inf, numpy.float32))
    return _transformers(eager_attention_forward, given, sinks=tensor(sinks))


def call_ring_attention_pytorch(q, k, v, given, **ring):
    """Its axes are [B, N, H, D]; heads of one group stand kv_heads apart, not side by side."""
    from ring_attention_pytorch.ring_flash_attention import ring_flash_attn
    groups = k.shape[1]
    q = q.unflatten(1, (groups, -1)).transpose(1, 2).flatten(1, 2)
    if "softcap" in given:
        ring |= {"softclamp_qk_sim": True, "softclamp_value": float(given["softcap"])}
    if "mask" in given:  # of keys alone
        ring |= {"mask": tensor(given["mask"]).expand(len(k), 1, 1, k.shape[2])[:, 0, 0]}
    # [ring]
    out = ring_flash_attn(*(part.transpose(1, 2).contiguous() for part in (q, k, v)),
                          causal=given.get("causal", False), bucket_size=16, **ring)
    # [/ring]
    return out.transpose(1, 2).unflatten(1, (-1, groups)).transpose(1, 2).flatten(1, 2)


def ring_attention_pytorch(given):
    """One rank, buckets of 16 keys."""
    return with_gradients(
        lambda q, k, v: call_ring_attention_pytorch(q, k, v, given), given)


def memory_efficient_attention_pytorch(given):
    """Its FlashAttentionFunction, tiles of 16 by 16."""
    from memory_efficient_attention_pytorch.flash_attention import FlashAttentionFunction
    mask = tensor(given["mask"]).expand(
        *given["q"].shape[:3], given["k"].shape[2]) if "mask" in given else None
    return with_gradients(
        lambda q, k, v: FlashAttentionFunction.apply(q, k, v, mask, given.get("causal", False),
                                                     16, 16), given)
