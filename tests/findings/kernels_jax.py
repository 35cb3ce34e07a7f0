"""Attention functions of JAX and of packages that stand on it, on a processor."""

import os

import jax
import jax.numpy as jnp
import numpy


def with_gradients(function, given):
    inputs = [jnp.asarray(given[name]) for name in "qkv"]
    out, backward = jax.vjp(function, *inputs)
    answers = {"out": out}
    if "dout" in given:
        answers |= dict(zip(("dq", "dk", "dv"), backward(jnp.asarray(given["dout"]))))
    return {name: numpy.asarray(array) for name, array in answers.items()}


def swapped(function):
    """For functions whose axes are [B, N, H, D]."""
    def call(q, k, v):
        return jnp.swapaxes(function(*(jnp.swapaxes(part, 1, 2) for part in (q, k, v))), 1, 2)
    return call


def _full(given, name):
    """bias or mask with all its axes, or None."""
    shape = (*given["q"].shape[:3], given["k"].shape[2])
    return jnp.broadcast_to(jnp.asarray(given[name]), shape) if name in given else None


def dot_product_attention(given):
    return with_gradients(swapped(
        lambda q, k, v: jax.nn.dot_product_attention(
            q, k, v, bias=_full(given, "bias"), mask=_full(given, "mask"), scale=given["scale"],
            is_causal=given.get("causal", False))), given)


def keras(given):
    """keras.ops on JAX; its axes are [B, N, H, D]."""
    os.environ["KERAS_BACKEND"] = "jax"
    import keras as package
    return with_gradients(swapped(
        lambda q, k, v: package.ops.dot_product_attention(
            q, k, v, bias=_full(given, "bias"), mask=_full(given, "mask"), scale=given["scale"],
            is_causal=given.get("causal", False), flash_attention=False)), given)


def flax(given):
    from flax import linen
    mask = _full(given, "mask")
    if given.get("causal"):
        mask = linen.make_causal_mask(jnp.ones((1, given["q"].shape[2])))
    return with_gradients(swapped(
        lambda q, k, v: linen.dot_product_attention(q, k, v, bias=_full(given, "bias"),
                                                    mask=mask)), given)


def flash_attention_jax(given):
    import flash_attention_jax as package
    if given.get("causal"):
        return with_gradients(package.causal_flash_attention, given)
    seen = jnp.ones((given["k"].shape[0], given["k"].shape[2]), bool)
    return with_gradients(lambda q, k, v: package.flash_attention(q, k, v, seen), given)
