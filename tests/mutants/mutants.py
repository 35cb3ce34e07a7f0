#!/usr/bin/env python3
"""Plants faults in a copy of the sources: each must be caught by the test that is named for it.

    mutants.py [NAME...]    all mutants of all lists, or those whose name contains a word
    mutants.py --match      builds nothing: does every mutant match once, does every killer exist?

A mutant is an edit as data: in `file`, `from` becomes `to`. It must match exactly once, compile,
and make the test case `killer` of the test program `program` fail; the unedited copy must pass it.
The sources themselves are never touched: the copy lives in build/mutants/.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "style"))
import sources  # noqa: E402

ROOT = HERE.parent.parent
COPY = ROOT / "build/mutants/source"
BUILD = ROOT / "build/mutants/build"
TEST_CASE = re.compile(r'\bTEST_CASE\s*\(\s*((?:"(?:[^"\\]|\\.)*"\s*)+)')
TIME_LIMIT_SECONDS = 300  # a mutant that loops for ever is caught, too


def test_cases():
    """The names of all test cases, the literals joined."""
    found = set()
    for path in (ROOT / "tests").rglob("*.cpp"):
        for literals in TEST_CASE.findall(path.read_text(encoding="utf-8")):
            found.add("".join(re.findall(r'"((?:[^"\\]|\\.)*)"', literals)).replace('\\"', '"'))
    return found


def mismatches(mutants):
    """What is wrong with the list itself, as sentences."""
    known = test_cases()
    for mutant in mutants:
        times = (ROOT / mutant["file"]).read_text(encoding="utf-8").count(mutant["from"])
        if times != 1:
            yield f"{mutant['name']}: matches {times} times in {mutant['file']}, must match once"
        if mutant["killer"] not in known:
            yield f"{mutant['name']}: no test case is called '{mutant['killer']}'"
    names = [mutant["name"] for mutant in mutants]
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield f"{name}: two mutants of this name"


def copy_sources():
    """Brings the copy up to date; unchanged files keep their time, so that little is rebuilt."""
    for path in sources.files(ROOT):
        source, target = ROOT / path, COPY / path
        if not (target.is_file() and target.read_bytes() == source.read_bytes()):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)


def build(program):
    """True if the program compiles."""
    jobs = os.environ.get("RINGPROOF_JOBS", str(os.cpu_count()))
    done = subprocess.run(["cmake", "--build", BUILD, "--parallel", jobs, "--target", program],
                          capture_output=True, text=True)
    return done.returncode == 0, done.stdout + done.stderr


def passes(program, test_case):
    """True if the test case passes; a crash or an endless loop is a failure."""
    exact = re.sub(r"([\\,\[\]*~])", r"\\\1", test_case)
    try:
        done = subprocess.run([BUILD / "tests" / program, exact], cwd=COPY, capture_output=True,
                              timeout=TIME_LIMIT_SECONDS)
    except subprocess.TimeoutExpired:
        return False
    if b"No test cases matched" in done.stdout + done.stderr:
        raise SystemExit(f"mutants: {program} has no test case '{test_case}'")
    return done.returncode == 0


def verdict(mutant):
    """"killed", or what happened instead."""
    target = COPY / mutant["file"]
    text = target.read_text(encoding="utf-8")
    try:
        target.write_text(text.replace(mutant["from"], mutant["to"]), encoding="utf-8")
        compiles, log = build(mutant["program"])
        if not compiles:
            return "does not compile:\n" + log
        return "SURVIVES" if passes(mutant["program"], mutant["killer"]) else "killed"
    finally:
        target.write_text(text, encoding="utf-8")


def main(arguments):
    mutants = [mutant for path in sorted(HERE.glob("*.json"))
               for mutant in json.loads(path.read_text(encoding="utf-8"))]
    wrong = list(mismatches(mutants))
    for sentence in wrong:
        print(f"mutants: {sentence}")
    if wrong or arguments == ["--match"]:
        print(f"mutants: {len(mutants)} listed, {len(wrong)} problems")
        return 1 if wrong else 0
    chosen = [m for m in mutants if not arguments or any(word in m["name"] for word in arguments)]
    copy_sources()
    subprocess.run(["cmake", "-S", COPY, "-B", BUILD, "-G", "Ninja", "-DRINGPROOF_TUTORIALS=OFF",
                    "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_CXX_FLAGS_RELEASE=-O1"],
                   check=True, stdout=subprocess.DEVNULL)
    for program in sorted({mutant["program"] for mutant in chosen}):
        compiles, log = build(program)
        if not compiles:
            raise SystemExit(f"mutants: {program} does not compile unedited:\n{log}")
    for program, killer in sorted({(mutant["program"], mutant["killer"]) for mutant in chosen}):
        if not passes(program, killer):
            raise SystemExit(f"mutants: '{killer}' fails without any fault")
    alive = 0
    for mutant in chosen:
        result = verdict(mutant)
        alive += result != "killed"
        print(f"{result:9} {mutant['name']:28} {mutant['fault']}", flush=True)
    print(f"mutants: {len(chosen) - alive} of {len(chosen)} killed by the test named for them")
    return 1 if alive or not chosen else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
