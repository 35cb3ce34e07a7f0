"""Uses of the package that a type checker must accept, and below the mark those it must not."""

import numpy
import ringproof

q = numpy.zeros((1, 1, 2, 4), numpy.float32)
report = ringproof.check(q, q, q, out=q, contract="fp32", causal="top_left", window=(3, -1))
word: str = report.verdict
names: list[str] = [one.id for one in report.explanations]
low: numpy.ndarray = ringproof.truth(q, q, q)["out"].lo
tightest: "str | None" = ringproof.fit("case.safetensors").tightest
paths: list[str] = ringproof.gen("quick", "folder")
for problem in ringproof.gen("quick"):
    ringproof.check(**problem.arguments, out=q)
preset: str = ringproof.contracts()[0]

# refused below
ringproof.check(q, q, q, out=q, causal="upper")
ringproof.check(q, q, q, out=q, maks=q)
ringproof.truth(q, q, q, window=3)
number: int = report.verdict
