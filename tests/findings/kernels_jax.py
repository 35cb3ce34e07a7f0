"""Attention functions of JAX and of packages that stand on it, on a processor: each is compiled by
jax.jit together with its backward pass."""

import functools
import os
import typing

import jax
import jax.numpy as jnp
import numpy


@functools.partial(jax.jit, static_argnums=0)
def _both_passes(function, tensors, dout, terms):
    """Forward and backward pass as one program: the terms are its arguments, too, so that problems
    of the same shapes share it."""
    out, backward = jax.vjp(lambda *inputs: function(*inputs, **terms), *tensors)
    gradients = backward(dout) if dout is not None else ()
    return {"out": out} | dict(zip(("dq", "dk", "dv"), gradients))


def with_gradients(function, given, **options):
    """`options` are known when the program is compiled; bias and mask get all their axes."""
    shape = (*given["q"].shape[:3], given["k"].shape[2])
    terms = {name: jnp.broadcast_to(given[name], shape) for name in ("bias", "mask")
             if name in given}
    tensors = [jnp.asarray(given[name]) for name in "qkv"]
    dout = jnp.asarray(given["dout"]) if "dout" in given else None
    answers = _both_passes(_Function(function, tuple(options.items())), tensors, dout, terms)
    return {name: numpy.asarray(array) for name, array in answers.items()}


class _Function(typing.NamedTuple):
    """A function and options that are equal wherever they occur, as jit needs to find it again."""
    function: typing.Callable
    options: tuple

    def __call__(self, *tensors, **terms):
        return self.function(*tensors, **terms, **dict(self.options))


def swapped(function):
    """For functions whose axes are [B, N, H, D]."""
    @functools.wraps(function)
    def call(q, k, v, **terms):
        return jnp.swapaxes(function(*(jnp.swapaxes(part, 1, 2) for part in (q, k, v)), **terms),
                            1, 2)
    return call


@swapped
def _jax_nn(q, k, v, **terms):
    return jax.nn.dot_product_attention(q, k, v, **terms)


@swapped
def _keras_ops(q, k, v, **terms):
    os.environ["KERAS_BACKEND"] = "jax"
    import keras as package
    return package.ops.dot_product_attention(q, k, v, flash_attention=False, **terms)


@swapped
def _flax_linen(q, k, v, mask=None, is_causal=False, **terms):
    from flax import linen
    if is_causal:
        mask = linen.make_causal_mask(jnp.ones((1, q.shape[1])))
    return linen.dot_product_attention(q, k, v, mask=mask, **terms)


def _flash(q, k, v, mask=None, is_causal=False):
    import flash_attention_jax as package
    if is_causal:
        return package.causal_flash_attention(q, k, v)
    seen = jnp.ones((k.shape[0], k.shape[2]), bool) if mask is None else mask[:, 0, 0]
    return package.flash_attention(q, k, v, seen)


def dot_product_attention(given):
    return with_gradients(_jax_nn, given, scale=given["scale"],
                          is_causal=given.get("causal", False))


def keras(given):
    return with_gradients(_keras_ops, given, scale=given["scale"],
                          is_causal=given.get("causal", False))


def flax(given):
    return with_gradients(_flax_linen, given, is_causal=given.get("causal", False))


def flash_attention_jax(given):
    return with_gradients(_flash, given, is_causal=given.get("causal", False))
