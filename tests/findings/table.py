#!/usr/bin/env python3
"""The tables of docs/findings.md from docs/findings.json.

    table.py PAGE JSON [--write]

Without --write: exit 1 and one line if the page does not hold what the record says.
"""

import json
import pathlib
import re
import sys

PART = re.compile(r"(<!-- findings: (\w+) -->\n).*?(<!-- /findings -->)", re.DOTALL)
ANSWERS = ("out", "lse", "dq", "dk", "dv")
TYPES = {"float64": "fp64", "float32": "fp32", "bfloat16": "bf16", "float16": "fp16"}


def fields(value, path=""):
    """Leaves of a contract in words: inputs.load_u 2^-24."""
    if isinstance(value, dict):
        return [word for name, one in value.items() if path or name != "base"
                for word in fields(one, f"{path}.{name}" if path else name)]
    return [f"{path} {power(value)}"]


def contract_words(contract):
    """A name, or a base and the fields that replace its own: `fp32-simd`, inputs.load_u 2^-24."""
    if isinstance(contract, str):
        return f"`{contract}`"
    return ", ".join([f"`{contract['base']}`", *fields(contract)])


def power(value):
    return value.replace("0x1p", "2^") if isinstance(value, str) else str(value)


def rows(record):
    for one in record["implementations"]:
        for run in one["runs"]:
            yield one, run


def counts(run):
    """passed of judged for each answer; every answer was judged in every case that has it."""
    judged = {answer: run["passed"].get(answer, 0) for answer in ANSWERS}
    for refusal in run["refused"]:
        for answer in refusal["answers"]:
            judged[answer] += refusal["cases"]
    for _, _, undecided in run["other"]:
        for answer in undecided:
            judged[answer] += 1
    return [f"{run['passed'].get(answer, 0)}/{judged[answer]}" if judged[answer] else ""
            for answer in ANSWERS]


def judged(record):
    """Every implementation under the contract that it is held to."""
    yield "| package | function | inputs | contract | suite | out | lse | dq | dk | dv | refused |"
    yield "|---|---|---|---|---|---|---|---|---|---|---|"
    for one, run in rows(record):
        if run["declared"]:
            refused = sum(refusal["cases"] for refusal in run["refused"])
            cells = [f"{one['package']} {one['version']}", one["name"], TYPES[run["dtype"]],
                     contract_words(run["contract"]), run["suite"], *counts(run),
                     str(refused or "")]
            yield f"| {' | '.join(cells)} |"


def refusals(record, declared):
    """What is refused under declared contracts, or under stricter ones: there, no mistakes."""
    words = ["package", "function", "inputs", "contract", "answers", "cases", "the smallest",
             *(["explanation"] if declared else []), "`fit`"]
    yield f"| {' | '.join(words)} |"
    yield "|---" * len(words) + "|"
    for one, run in rows(record):
        for refusal in run["refused"] if run["declared"] == declared else ():
            explained = ", ".join(dict.fromkeys(refusal["explanations"])) or "none"
            fit = f"`{refusal['fit']}`" if refusal["fit"] else "no contract"
            cells = [f"{one['package']} {one['version']}", one["name"], TYPES[run["dtype"]],
                     contract_words(run["contract"]), ", ".join(refusal["answers"]),
                     str(refusal["cases"]), f"`{refusal['smallest']}`",
                     *([explained] if declared else []), fit]
            yield f"| {' | '.join(cells)} |"


def sources(record):
    yield "| package | function | where its arithmetic stands | what it says |"
    yield "|---|---|---|---|"
    for one in record["implementations"]:
        yield f"| {one['package']} | {one['name']} | `{one['source']}` | {one['arithmetic']} |"


PARTS = {"judged": judged, "refused": lambda record: refusals(record, True),
         "stricter": lambda record: refusals(record, False), "sources": sources}


def written(page, record):
    return PART.sub(lambda part: part[1] + "\n" + "\n".join(PARTS[part[2]](record)) + "\n\n"
                    + part[3], page)


def main(page, record, *write):
    page = pathlib.Path(page)
    text = page.read_text(encoding="utf-8")
    if set(PARTS) != {part[2] for part in PART.finditer(text)}:
        return f"{page}: not every part of {', '.join(PARTS)} is there"
    wanted = written(text, json.loads(pathlib.Path(record).read_text(encoding="utf-8")))
    if write:
        page.write_text(wanted, encoding="utf-8")
    return f"{page}: is not what {record} says; run ./run findings" if (
        not write and wanted != text) else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
