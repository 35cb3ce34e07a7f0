"""The certified truth as arrays, and the names of contracts."""

import json
from dataclasses import dataclass

import numpy

from . import _core
from ._arrays import NAMES, WORDS
from ._judge import arguments_of
from ._problem import contract_text


@dataclass(frozen=True)
class Certified:
    """A tensor of certified intervals: the exact element lies in [lo, hi], proven.

    `rounded` is the exact answer rounded to the type that was asked for, as float64 numbers (every
    number of every type is one); NaN where the interval does not decide it, `undecided` times.
    """

    lo: numpy.ndarray
    hi: numpy.ndarray
    rounded: numpy.ndarray
    undecided: int


def truth(q, k=None, v=None, *, dtype=None, name=None, **arguments):
    """The exact answer of a problem as intervals: {"out": Certified, "lse": ..., "dq": ...}.

    exact = truth(q, k, v, causal="top_left")
    exact["out"].lo, exact["out"].hi     # [B, H, Nq, Dv] as q and v are laid out

    Gradients are there where dout or dlse is given. `dtype` is the type to round to, by its NumPy
    name or type (default: that of q; the LSE is rounded to float32, with float64 to float64).
    The arguments of the problem, `precision` and `threads` as `check`. Raises ValueError.
    """
    given, file = arguments_of("truth", q, k, v, arguments)
    found = _core.truth(given.tensors, given.spec_text, _word(dtype), given.options,
                        name or file or "case")
    layout = given.spec.get("layout", "bhnd")  # of a file: the canonical one
    return {answer: Certified(*(_laid_out(answer, array, layout) for array in parts[:3]), parts[3])
            for answer, parts in found.items()}


def _word(dtype):
    if dtype is None:
        return ""
    named = str(dtype).removeprefix("torch.")
    if named not in WORDS and named not in NAMES:
        named = numpy.dtype(dtype).name
    if named in NAMES:
        return named
    if named not in WORDS:
        raise ValueError(f"dtype: {named} is none of {', '.join(WORDS)}")
    return WORDS[named]


def _laid_out(answer, array, layout):
    """From the order [B, H, N, D] to that of the problem."""
    if answer in ("dbias", "dsinks") or layout == "bhnd":
        return array
    if answer != "lse":
        array = array.swapaxes(1, 2)
    return array[0] if layout == "nhd" else array


def contracts(contract=None):
    """The names of the presets; with a name or an object, that contract expanded, as a dict."""
    if contract is None:
        return _core.presets()
    return json.loads(_core.expanded_contract(contract_text(contract)))
