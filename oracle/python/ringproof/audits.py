"""Judging tests instead of kernels (`audit`), and problems that wrong kernels fail (`gen`)."""

import json
import os
from dataclasses import dataclass

from . import _core
from ._judge import arguments_of
from ._problem import from_parts


@dataclass(frozen=True)
class Audit:
    """Which known mistakes a tolerance rule accepts: `str` is the table, the fields are its data.

    Findings are {"id", "words", "accepted", "ratio", "not_computed"}; ratio is measured over
    allowed, None beyond all numbers. What the rule compares and was not computed ("dq", ...) keeps
    a finding from being accepted, whatever its ratio.
    """

    text: str
    rule: str
    rows: int
    rows_total: int
    exact: dict  # the exact answer itself: a sound rule accepts it
    made_up: list  # zeros, mean of V, ...: answers that no test should accept
    findings: list  # mistakes of the catalogue that change an answer

    @property
    def accepted(self) -> list[str]:
        """Ids of the mistakes that the rule accepts in at least one form."""
        return sorted({one["id"] for one in self.findings if one["accepted"]})

    def __str__(self):
        return self.text


def audit(rule, q=None, k=None, v=None, *, contract=None, sampled_rows=64, forms=2, threads=None,
          seed=1, name=None, **arguments):
    """Which known mistakes would this tolerance rule accept?

    print(audit({"atol": 1e-2, "rtol": 1e-2}, q, k, v, causal="top_left"))
    print(audit("flash-attention"))          # a public rule, on the inputs that belong to it

    `rule`: {"atol", "rtol"} for out, an object {"compares": {"out": [...]}} (docs/audits.md), or
    the name of a public rule. Shapes and terms of the problem as `check`; without q the inputs are
    the rule's, drawn from `seed`. `sampled_rows`: query rows of each head; `forms` of each mistake.
    Raises ValueError.
    """
    if isinstance(rule, dict) and "compares" not in rule:
        rule = {"name": "given", "compares": {"out": [{"kind": "close", **rule}]}}
    text = rule if isinstance(rule, str) else json.dumps(rule)
    if q is None and arguments:
        raise TypeError(f"audit() without q takes no {', '.join(arguments)}")
    given, file = arguments_of("audit", q, k, v, {"contract": contract, **arguments})
    tensors = None if q is None else given.tensors
    words, found = _core.audit(text, tensors, given.spec_text, given.contract_text, sampled_rows,
                               forms, threads, seed, name or file or "case")
    return Audit(text=words.rstrip("\n"), **json.loads(found))


def public_rules():
    """Names of the tolerance rules of public projects that `audit` knows."""
    return _core.public_rule_names()


def gen(suite="quick", folder=None, *, seed=1, threads=None):
    """The adversarial problems of a suite ("quick", "full", "long", "vectors").

    for problem in gen("quick"):
        out = kernel(problem.q, problem.k, problem.v, ...)
        check(**problem.arguments, out=out, contract="bf16-flash")

    Without a folder: an iterator of `Problem`, each made when its turn comes. With one: writes the
    problem files and suite.json, with what each case provably refuses, as `ringproof gen` does, and
    returns the paths. Raises ValueError for a suite that is none or a folder that is not empty.
    """
    if folder is None:
        count = _core.suite_size(suite)  # an unknown name is an error now, not at the first turn
        return (from_parts(*_core.suite_problem(suite, n, seed)) for n in range(count))
    folder = os.fspath(folder)
    _core.write_suite(suite, folder, seed, threads)
    return sorted(os.path.join(folder, name) for name in os.listdir(folder)
                  if name.endswith(".safetensors"))
