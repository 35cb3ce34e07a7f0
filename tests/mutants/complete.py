#!/usr/bin/env python3
"""Completeness: every claim, fault, law, mask, layout, kernel, preset and public function is met by
a check, or excused with a reason.

An excuse (excuses.json) that nobody needs is an error, too.
"""

import json
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE))
import by_suite  # noqa: E402
import by_test  # noqa: E402
import places  # noqa: E402

ROOT = HERE.parent.parent
EXCUSES = json.loads((HERE / "excuses.json").read_text(encoding="utf-8"))


def texts(pattern, folder="tests"):
    return [path.read_text(encoding="utf-8") for path in sorted((ROOT / folder).rglob(pattern))]


def missing(kind, wanted, met):
    """What nobody meets and nobody excuses, and excuses that are not needed."""
    excused = {excuse["name"] for excuse in EXCUSES[kind]}
    for name in sorted(set(wanted) - set(met) - excused):
        yield f"{kind}: nothing checks {name}"
    for name in sorted(excused & set(met)):
        yield f"{kind}: {name} is excused without need"
    for name in sorted(excused - set(wanted)):
        yield f"{kind}: the excuse of {name} excuses nothing"


def problems():
    tests = [mutant for mutant in by_test.load() if "equivalent" not in mutant]
    suite = [mutant for mutant in by_suite.load() if "equivalent" not in mutant]

    # Each class of faults is planted somewhere.
    classes = json.loads((HERE / "classes.json").read_text(encoding="utf-8"))
    planted = {mutant["class"] for mutant in suite}
    planted |= {mutant["fault"].split(":")[0] for mutant in tests}
    yield from missing("faults", classes, planted)
    for name in sorted({mutant["class"] for mutant in suite} - set(classes)):
        yield f"faults: {name} is no class of classes.json"

    # Each law has been seen to break: by its own mutant, or by any in the last full run.
    kills = json.loads(by_suite.KILLS.read_text(encoding="utf-8"))
    broken = {law for laws in kills.values() for law in laws}
    broken |= {mutant["law"] for mutant in suite}
    yield from missing("laws", by_suite.themes(), broken)

    # Each feature (mask, addition, axis order, layout) is needed by a law.
    header = (ROOT / "tests/suite/feature.hpp").read_text(encoding="utf-8")
    listed = re.search(r"enum class Feature[^{]*\{(.*?)\};", header, re.DOTALL).group(1)
    features = re.findall(r"^  (\w+),", listed, re.MULTILINE)
    needed = set(re.findall(r"Feature::(\w+)", "".join(texts("laws_*.cpp"))))
    for name in sorted(set(features) - needed - {"count"}):
        yield f"features: no law needs {name}"

    # Each kernel and tile has a fault planted in it.
    sources = [path.relative_to(ROOT).as_posix() for pattern in ("cuda/kernels/*.cu",
                                                                 "mpi/tile_*.cpp",
                                                                 "reference/*.hpp")
               for path in sorted(ROOT.glob(pattern))]
    edited = {mutant["file"] for mutant in tests + suite}
    yield from missing("sources", sources, edited & set(sources))

    # Each source of the judge that decides something has a fault, and each function that a formula
    # or a lemma is written at.
    every, edited, functions, met = places.files_and_functions(tests + suite)
    yield from missing("judge", every, edited)
    yield from missing("formulas", functions, met)

    # Each public function is called by a test, each function of the Python package and each command
    # and preset is named by one; each claim has a test of its own name, and that test kills.
    declared = re.findall(r"^RINGPROOF_API[^;(]*?(ringproof_\w+)\(",
                          (ROOT / "oracle/ringproof.h").read_text(encoding="utf-8"), re.MULTILINE)
    called = set(re.findall(r"ringproof_\w+", "".join(texts("*.c") + texts("*.cpp"))))
    yield from missing("functions", declared, called)
    text = "\n".join(texts("*.cpp") + texts("*.py"))
    words = {*re.findall(r"\w+", text), *re.findall(r"[\w-]+", text)}
    package = (ROOT / "oracle/python/ringproof/__init__.py").read_text(encoding="utf-8")
    exported = re.findall(r'"([a-z]\w+)"', package.split("__all__")[1])  # classes come out of them
    called = re.findall(r"\bringproof\.(\w+)", text)
    yield from missing("python", exported, called)
    commands = re.findall(r'add_subcommand\(\s*"(\w[\w-]*)"', "".join(texts("*.cpp", "oracle/cli")))
    yield from missing("commands", commands, words)
    presets = json.loads((ROOT / "oracle/contract/presets.json").read_text(encoding="utf-8"))
    yield from missing("presets", presets, words)
    claims = [claim["id"] for claim in json.loads(
        (ROOT / "tests/claims.json").read_text(encoding="utf-8")) if "waits_for" not in claim]
    named = {name.split(":")[0] for name in by_test.test_cases()}
    yield from (f"claims: no test is named for {claim}" for claim in claims if claim not in named)
    yield from missing("claims", claims, {mutant["killer"].split(":")[0] for mutant in tests})


if __name__ == "__main__":
    found = list(problems())
    for sentence in found:
        print(f"complete: {sentence}")
    print(f"complete: {len(found)} problems")
    sys.exit(1 if found else 0)
