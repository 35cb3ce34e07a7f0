"""What a judgement says: `Report`, and the error that `assert_certified` raises."""

import functools
import html
import json
import os
import shlex
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Explanation:
    """A known mistake with which every judged element is consistent. No proof of the mistake."""

    id: str  # of the catalogue, "MASK-OFF-BY-ONE"
    also: str  # other ids under which the same function may be filed
    words: str  # which form of it
    elements: int  # judged elements, all of which lie in its box
    open: int  # of them those of which it says nothing
    estimated: bool  # the contract says nothing of a kernel that could make it


class Report:
    """The verdict on the answers of one problem.

    `verdict` is a word: PASS, FAIL, UNDECIDED, SUSPECT (docs/verdicts.md says what each proves).
    `str(report)` is what `ringproof check` prints, `to_dict()` its JSON report; a notebook shows
    the picture of error over bound. Explanations and picture are computed when they are asked for;
    that raises ValueError if an array has changed since it was judged.
    """

    def __init__(self, judgement: Any, name: str) -> None:
        self._judgement = judgement
        self._dict = json.loads(judgement.json(""))
        self._case = self._dict["cases"][0]
        self.name = name
        self.file: str | None = None  # where save() wrote the case

    @property
    def verdict(self) -> str:
        return self._case["verdict"]

    @property
    def passed(self) -> bool:
        return self.verdict == "PASS"

    @property
    def reason(self) -> str:
        """Why the verdict is neither PASS nor FAIL, or ""."""
        return self._case.get("reason", "")

    @property
    def contract(self) -> str:
        """The name of the contract."""
        return self._case["contract"]["name"]

    @property
    def contract_hash(self) -> str:
        return self._case["contract"]["hash"]

    @property
    def answers(self) -> dict[str, Any]:
        """What was found of each answer, by its name, as in the JSON report."""
        return {answer["answer"]: answer for answer in self._case["answers"]}

    @property
    def worst(self) -> dict[str, Any] | None:
        """The element with the largest error over bound of all answers, or None."""
        elements = [dict(answer["worst"], tensor=name) for name, answer in self.answers.items()
                    if "worst" in answer]
        return max(elements, key=lambda one: _number(one["error_over_bound"]), default=None)

    @property
    def power(self) -> dict[str, Any]:
        """What the judged rows would have refused, as in the JSON report."""
        return self._case["power"]

    @functools.cached_property
    def explanations(self) -> list[Explanation]:
        """Known mistakes that explain a refused answer, simplest first."""
        return [Explanation(**one) for one in json.loads(self._judgement.explanations_json())]

    @functools.cached_property
    def explanation_text(self) -> str:
        """What `ringproof explain` says beyond the report: classes, or where it is refused."""
        return self._judgement.explanation_text()

    def heat_map(self) -> str:
        """Error over bound of every judged element, gradients too, as the text of an SVG file."""
        return self._judgement.heat_map()

    def to_html(self) -> str:
        """The page that `ringproof check --report html=F` writes: one file, no script."""
        return self._judgement.html(self.repeat)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes problem, answers and contract as a case file; `repeat` then names it.

        Raises ValueError where the case was read from a file, or the file cannot be written.
        """
        self._judgement.save(os.fspath(path))
        self.file = os.fspath(path)

    @property
    def repeat(self) -> str:
        """The command that repeats the judgement, once the case was saved; else ""."""
        return f"python -m ringproof explain {shlex.quote(self.file)}" if self.file else ""

    def to_dict(self) -> dict[str, Any]:
        """The JSON report (schema "ringproof.report/1") as plain objects."""
        return json.loads(self._judgement.json(self.repeat))

    def __str__(self) -> str:
        text = self._judgement.text(self.repeat)
        if "explanation_text" in self.__dict__:
            text += self.explanation_text
        return text.rstrip("\n")

    def __repr__(self) -> str:
        return f"<ringproof.Report {self.verdict}: {self.name} under {self.contract}>"

    def __bool__(self):
        raise TypeError("a verdict is a word, not a truth value: compare report.verdict, "
                        "or call assert_certified()")

    def _repr_html_(self) -> str:
        return (f"<pre>{html.escape(str(self))}</pre>\n"
                f'<div style="overflow-x:auto">{self.heat_map()}</div>')


class NotCertified(AssertionError):
    """An answer that was not certified: the report is `report`, its words are the message."""

    def __init__(self, report: Report) -> None:
        self.report = report
        super().__init__(failure_text(report))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the case into a file; the message then names the command that repeats it."""
        self.report.save(path)
        self.args = (failure_text(self.report),)


def failure_text(report):
    """Verdict and explanation first, then the figures: what to read where there is little room."""
    lines = str(report._judgement.text(report.repeat)).rstrip("\n").split("\n")
    explanation = report.explanation_text.rstrip("\n").split("\n")
    return "\n".join([lines[0], *filter(None, explanation), *lines[1:]])


def _number(value):
    return float(value) if isinstance(value, str) else value


for _public in (Explanation, Report, NotCertified):
    _public.__module__ = "ringproof"  # as people import and read it
