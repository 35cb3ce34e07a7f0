"""ringproof judges outputs of attention kernels against a certified truth and a declared contract.

    import ringproof
    report = ringproof.check(q, k, v, out=out, contract="bf16-flash", causal="top_left")
    print(report)

FAIL proves that no kernel of the declared contract gives this answer; PASS proves that every judged
element is within its derived bound, and says what the judged rows would have refused.
"""

from ._core import contract_hash, version as __version__
from ._judge import Fit, assert_certified, check, explain, fit
from ._problem import Problem, read, write
from ._truth import Certified, contracts, truth
from .audits import Audit, audit, gen
from .report import Explanation, NotCertified, Report
from .suite import suite

__all__ = [
    "Audit", "Certified", "Explanation", "Fit", "NotCertified", "Problem", "Report",
    "assert_certified", "audit", "check", "contract_hash", "contracts", "explain", "fit", "gen",
    "read", "suite", "truth", "write",
]
