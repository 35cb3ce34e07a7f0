"""What a problem is made of: which arguments are tensors, which are words of the spec.

The names are those of case files (docs/formats.md), and so are the meanings.
"""

import difflib
import json
import operator
import os
from dataclasses import dataclass, field
from typing import Any

import numpy

from . import _core
from ._arrays import from_bytes, handed_over

ANSWERS = ("out", "lse", "dq", "dk", "dv", "dbias", "dsinks")
TENSORS = ("q", "k", "v", "bias", "mask", "alibi_slopes", "sinks", "key_lengths",
           "cu_seqlens_q", "cu_seqlens_k", "positions_q", "positions_k",
           "documents_q", "documents_k", "q_scale", "k_scale", "v_scale",
           "dout", "dlse") + ANSWERS
TERMS = ("layout", "scale", "causal", "window", "softcap", "empty_row", "lse_base", "ranks",
         "ring")
OPTIONS = ("only", "require", "rows", "seed", "budget", "power", "probabilistic", "precision",
           "threads")


@dataclass
class Problem:
    """One problem as arrays and terms: what `gen` and `read` give, and a kernel answers.

    `arguments` holds q [B, H, Nq, D], k [B, Hkv, Nk, D], v [B, Hkv, Nk, Dv] and whatever else the
    problem has, under the names that `check` takes; `check(**problem.arguments, out=...)` judges.
    """

    name: str
    arguments: dict[str, Any]
    contract: Any = None
    about: dict[str, Any] = field(default_factory=dict)

    def __getattr__(self, name):
        try:
            return self.__dict__["arguments"][name]
        except KeyError:
            raise AttributeError(f"the problem {self.__dict__.get('name')} has no {name}") from None


@dataclass
class Arguments:
    """Arguments of `check` and its like, sorted: tensors handed over, spec, options."""

    tensors: dict[str, tuple[Any, str]] = field(default_factory=dict)
    spec: dict[str, Any] = field(default_factory=lambda: {"version": 1})
    options: dict[str, Any] = field(default_factory=dict)
    contract: Any = None

    @property
    def spec_text(self):
        return json.dumps(self.spec)

    @property
    def contract_text(self):
        return contract_text(self.contract)


def contract_text(contract):
    """A name or JSON text from what an argument `contract` may be."""
    if contract is None:
        return ""
    return contract if isinstance(contract, str) else json.dumps(contract)


def sorted_arguments(function, given):
    """Arguments from keyword arguments. An unknown name is a TypeError with the nearest one."""
    arguments = Arguments()
    for name, value in given.items():
        if value is None:
            continue
        if name in TENSORS:
            arguments.tensors[name] = handed_over(name, value)
        elif name in TERMS:
            arguments.spec[name] = value
        elif name in OPTIONS:
            arguments.options[name] = value
        elif name == "contract":
            arguments.contract = value
        else:
            near = difflib.get_close_matches(name, TENSORS + TERMS + OPTIONS, 1)
            hint = f" (nearest: {near[0]})" if near else ""
            raise TypeError(f"{function}() has no argument {name!r}{hint}")
    _settle_terms(arguments)
    return arguments


def _settle_terms(arguments):
    spec, options = arguments.spec, arguments.options
    if isinstance(spec.get("causal"), (bool, numpy.bool_)):
        spec["causal"] = _causal_word(spec["causal"], arguments)
    if "scale" in spec:
        spec["scale"] = _number("scale", spec["scale"]).hex()  # itself, not its decimal digits
    if "window" in spec:
        spec["window"] = _sides(spec["window"])
    for name in ("only", "require"):
        if isinstance(options.get(name), str):
            options[name] = options[name].split(",")


def _number(name, given):
    """A number, or one in hexadecimal digits as case files have it."""
    try:
        return float.fromhex(given) if isinstance(given, str) else float(given)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}: {given!r} is no number") from error


def _sides(window):
    try:
        left, right = (operator.index(side) for side in window)
    except (TypeError, ValueError) as error:
        raise ValueError(f"window: {window!r} is no pair of whole numbers (left, right)") from error
    return [left, right]


def _causal_word(causal, arguments):
    """True says which mask only where queries and keys are equally many."""
    if not causal:
        return "none"
    layout = arguments.spec.get("layout", "bhnd")
    axis = {"bhnd": -2, "bnhd": -3, "nhd": -3}.get(layout, -2)
    q, k = (tuple(getattr(arguments.tensors.get(name, [None])[0], "shape", ())) for name in "qk")
    if min(len(q), len(k)) >= -axis and q[axis] == k[axis]:
        return "top_left"
    raise ValueError("causal: True is ambiguous where Nq and Nk differ; "
                     'say "top_left" or "bottom_right"')


def is_path(value):
    return isinstance(value, (str, os.PathLike))


def read(path):
    """The problem and the answers of a case file, as arrays of NumPy (and ml_dtypes).

    Raises ValueError "FILE: what is wrong (where)".
    """
    tensors, spec = _core.read_tensors(os.fspath(path))
    return from_parts(os.fspath(path), tensors, spec)


def from_parts(name, tensors, spec):
    terms = json.loads(spec) if spec else {}
    arguments = {tensor: from_bytes(stored) for tensor, stored in tensors.items()}
    for term in TERMS:
        if term in terms:
            arguments[term] = terms[term]
    if isinstance(arguments.get("scale"), str):
        arguments["scale"] = float.fromhex(arguments["scale"])
    if "window" in arguments:
        arguments["window"] = tuple(arguments["window"])
    return Problem(name, arguments, terms.get("contract"), terms.get("about", {}))


def write(path, *, contract=None, **arguments):
    """Writes problem and answers as one case file for `ringproof check`. Arguments as `check`."""
    given = sorted_arguments("write", arguments | {"contract": contract})
    if given.contract is not None:
        given.spec["contract"] = given.contract
    _core.write_tensors(os.fspath(path), given.tensors, given.spec_text)
