"""The functions that judge: check, assert_certified, explain, fit."""

import json
import os
from dataclasses import dataclass

from . import _core
from ._problem import is_path, sorted_arguments
from .report import NotCertified, Report


def arguments_of(function, q, k, v, given):
    """Arguments of a call with arrays, or with a case file in place of q; and the file, or None."""
    if not is_path(q):
        return sorted_arguments(function, {"q": q, "k": k, "v": v, **given}), None
    arguments = sorted_arguments(function, {"k": k, "v": v, **given})
    if arguments.tensors or arguments.spec != {"version": 1}:
        raise TypeError(f"{function}() takes a case file alone, or q, k and v")
    arguments.tensors = os.fspath(q)
    return arguments, arguments.tensors


def check(q, k=None, v=None, *, contract=None, name=None, **arguments):
    """Judges answers against the certified truth, inside the bound of a numeric contract.

    report = check(q, k, v, out=out, contract="bf16-flash", causal="top_left")

    Shapes, in the layout "bhnd": q [B, H, Nq, D], k [B, Hkv, Nk, D], v [B, Hkv, Nk, Dv];
    "bnhd" swaps the two middle axes, "nhd" has no batch. Or a case file in place of q.

    Answers, at least one: out [B, H, Nq, Dv], lse [B, H, Nq]; with dout and dlse (shaped as out and
    lse) the gradients dq, dk, dv, dbias, dsinks, each shaped as its input. dlse is the gradient of
    the natural logarithm, also with lse_base=2: the base says how lse is stored.

    The problem: bias, mask (broadcastable to [B, H, Nq, Nk]), alibi_slopes ([H] or [B, H]),
    sinks ([H]), key_lengths ([B]), cu_seqlens_q and cu_seqlens_k ([S + 1]), positions_q and
    positions_k ([N] or [B, N]), documents_q and documents_k ([N]), q_scale, k_scale and v_scale
    (4 axes, each 1, full or a divisor); layout, scale, causal ("none", "top_left", "bottom_right";
    True where Nq = Nk), window (left, right), softcap, empty_row ("zero", "nan", "any"),
    lse_base ("e" or 2), ranks, ring ({"layout": ..., "order": ...}).

    How hard: only, require (names of answers), rows and seed (a sample), budget (seconds), power,
    probabilistic, precision ("fast", "tight", or binary digits), threads (1 to 1024).

    Arrays are NumPy's, ml_dtypes', or anything with __dlpack__; they are read where they lie.
    The interpreter's lock is free while the judge works.
    Raises ValueError naming the tensor or the term that is wrong.
    """
    given, file = arguments_of("check", q, k, v, {"contract": contract, **arguments})
    name = name or file or "case"
    judgement = _core.Judgement(given.tensors, given.spec_text, given.contract_text,
                                given.options, name)
    report = Report(judgement, name)
    report.file = file
    return report


def assert_certified(q, k=None, v=None, *, contract=None, name=None, save=None, **arguments):
    """`check`; raises NotCertified, an AssertionError that explains, unless the verdict is PASS.

    assert_certified(q, k, v, out=kernel(q, k, v), contract="bf16-flash")

    `save`: a file into which the case is written if it does not pass. Returns the report.
    """
    report = check(q, k, v, contract=contract, name=name, **arguments)
    if not report.passed:
        if save is not None:
            report.save(save)
        raise NotCertified(report)
    return report


def explain(q, k=None, v=None, *, contract=None, name=None, **arguments):
    """`check`, with the known mistakes that explain a refused answer looked up at once.

    print(explain(q, k, v, out=out, contract="bf16-flash"))
    """
    report = check(q, k, v, contract=contract, name=name, **arguments)
    report.explanation_text
    report.explanations
    return report


@dataclass(frozen=True)
class Fit:
    """What `fit` found: `str` is the answer in words, the fields are the same as data."""

    text: str
    verdict: str  # under the declared contract
    answers: list  # [{"answer", "deciding": [{"field", "value"}, ...]}] of what it refuses
    accepting: list  # [{"contract", "hash", "allows", "differs"}], the tightest first
    explanations: list  # ids of the known mistakes that explain the answer
    tried: int

    @property
    def tightest(self) -> "str | None":
        """The name of the tightest contract that accepts everything, or None."""
        return self.accepting[0]["contract"] if self.accepting else None

    def __str__(self):
        return self.text


def fit(q, k=None, v=None, *, contract=None, name=None, **arguments):
    """My kernel or my contract? The contracts that would accept the answer, and what decides.

    Arguments as `check`. Raises ValueError as it does.
    """
    given, file = arguments_of("fit", q, k, v, {"contract": contract, **arguments})
    text, found = _core.fit(given.tensors, given.spec_text, given.contract_text, given.options,
                            name or file or "case")
    return Fit(text=text.rstrip("\n"), **json.loads(found))
