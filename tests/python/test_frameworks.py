"""Tensors of PyTorch and JAX, where those are installed."""

import numpy
import pytest
import ringproof
from attention import tensors


def test_pytorch_tensors_are_judged_where_they_lie():
    torch = pytest.importorskip("torch")
    q, k, v = (torch.tensor(array).bfloat16().requires_grad_() for array in tensors())
    out = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    arguments = {"out": out, "contract": "bf16-flash"}
    assert ringproof.check(q, k, v, **arguments, causal=True).verdict == "PASS"
    mask = torch.ones(9, 9, dtype=torch.bool).tril()
    assert ringproof.check(q, k, v, **arguments, mask=mask).verdict == "PASS"
    swapped = {name: tensor.transpose(1, 2) for name, tensor in
               {"q": q, "k": k, "v": v, "out": out}.items()}
    report = ringproof.check(**swapped, layout="bnhd", causal=True, contract="bf16-flash",
                             key_lengths=torch.tensor([9]))
    assert report.verdict == "PASS"
    assert ringproof.check(q, k, v, **arguments).verdict == "FAIL"


def test_pytorch_tensors_whose_sign_is_kept_aside_have_it():
    torch = pytest.importorskip("torch")
    q, k, v = map(torch.tensor, tensors())
    out = torch.nn.functional.scaled_dot_product_attention(q, k, v)
    lazy = torch.complex(torch.zeros_like(q), -q).conj().imag  # q, in a memory of -q
    assert lazy.is_neg() and torch.equal(lazy, q)
    assert ringproof.check(lazy, k, v, out=out, contract="fp32").verdict == "PASS"
    with pytest.raises(ValueError, match="^k: "):
        ringproof.check(q, torch.empty_like(k, device="meta"), v, out=out, contract="fp32")


def test_eight_bit_tensors_of_pytorch_are_read():
    torch = pytest.importorskip("torch")
    q, k, v = map(torch.tensor, tensors())
    k8, v8 = (tensor.to(torch.float8_e4m3fn) for tensor in (k, v))
    exact = ringproof.truth(q, k8, v8)["out"].rounded
    wide = ringproof.truth(q, k8.float(), v8.float())["out"].rounded
    assert (exact == wide).all()


def test_jax_arrays_are_judged():
    jax = pytest.importorskip("jax")
    q, k, v = (jax.numpy.asarray(array.swapaxes(1, 2)) for array in tensors())
    out = jax.nn.dot_product_attention(q, k, v, is_causal=True)
    report = ringproof.check(q, k, v, out=out, layout="bnhd", causal=True, contract="fp32")
    assert report.verdict == "PASS", str(report)
    rounded = [array.astype(jax.numpy.bfloat16) for array in (q, k, v)]
    exact = ringproof.truth(*rounded, layout="bnhd")["out"].rounded
    out = jax.numpy.asarray(exact.astype(numpy.float32)).astype(jax.numpy.bfloat16)
    assert ringproof.check(*rounded, out=out, layout="bnhd", contract="bf16-flash").passed
