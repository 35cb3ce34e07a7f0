#!/usr/bin/env python3
"""Plants faults in a copy of the sources: each must be caught by what is named for it.

    mutants.py [NAME...]      all mutants, or those whose name or fault contains a word
    mutants.py --suite ...    only those that the property suite kills (suite_mutants.json)
    mutants.py --tests ...    only those that a unit test kills (mutants.json, cuda.json)
    mutants.py --share N      the N-th part of each list whose turn it is, by the commit
    mutants.py --write        all that the suite kills; then kills.json and docs/faults.md
    mutants.py --match        builds nothing: does every mutant match once, does its killer exist?

A mutant is an edit as data: in `file`, `from` becomes `to`. It must match exactly once and compile.
Those with a `killer` must make the test case of that name in the program `program` fail, which the
unedited copy passes; the copy lives in build/mutants/. Those with a `law` are by_suite.py's.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "style"))
sys.path.insert(0, str(HERE))
import by_suite  # noqa: E402
import matrix  # noqa: E402
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


def share(mutants, parts):
    """The part of the list whose turn it is: the commit decides, so that a rerun is the same."""
    commit = subprocess.run(["git", "-C", ROOT, "rev-parse", "HEAD"], capture_output=True,
                            text=True).stdout.strip()
    turn = int(commit or "0", 16) % parts
    return [mutant for n, mutant in enumerate(mutants) if n % parts == turn]


def configure():
    copy_sources()
    subprocess.run(["cmake", "-S", COPY, "-B", BUILD, "-G", "Ninja", "-DRINGPROOF_TUTORIALS=OFF",
                    "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_CXX_FLAGS_RELEASE=-O1"],
                   check=True, stdout=subprocess.DEVNULL)


def build_or_stop(program):
    compiles, log = build(program)
    if not compiles:
        raise SystemExit(f"mutants: {program} does not compile unedited:\n{log}")


def kill_by_tests(chosen):
    """How many survive the tests that are named for them."""
    for program in sorted({mutant["program"] for mutant in chosen}):
        build_or_stop(program)
    for program, killer in sorted({(mutant["program"], mutant["killer"]) for mutant in chosen}):
        if not passes(program, killer):
            raise SystemExit(f"mutants: '{killer}' fails without any fault")
    alive = 0
    for mutant in chosen:
        result = verdict(mutant)
        alive += result != "killed"
        print(f"{result:9} {mutant['name']:28} {mutant['fault']}", flush=True)
    print(f"mutants: {len(chosen) - alive} of {len(chosen)} killed by the test named for them")
    return alive


def kill_by_suite(chosen, build_folder, write):
    """How many survive the law that is named for them. Prints the kill matrix."""
    live = [mutant for mutant in chosen if "equivalent" not in mutant]
    jobs = int(os.environ.get("RINGPROOF_JOBS", str(os.cpu_count())))
    kills, slowest, alive = {}, 0.0, 0
    for mutant, record in by_suite.run(build_folder, live, 3, jobs):
        kills[mutant["name"]] = record["laws"]
        slowest = max(slowest, record["seconds"])
        alive += record["verdict"] != "killed"
        print(f"{record['verdict']:9} {mutant['class']:16} {mutant['name']:28} {mutant['what']} "
              f"({len(record['laws'])} laws)", flush=True)
        if record["log"]:
            print(record["log"])
    print()
    print("\n".join(matrix.matrix(live, kills)))
    seen = sum(bool(laws) for laws in kills.values())
    print(f"mutants: the suite kills {seen} of {len(live)}, {len(live) - alive} by the law named "
          f"for them; the slowest in {slowest:.0f} s")
    if write:
        by_suite.KILLS.write_text(json.dumps(kills, indent=0) + "\n", encoding="utf-8")
        matrix.main(["--write"])
    return alive


def main(arguments):
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("words", nargs="*")
    for flag in ("--suite", "--tests", "--write", "--match"):
        parser.add_argument(flag, action="store_true")
    parser.add_argument("--share", type=int, default=1)
    parser.add_argument("--build", type=pathlib.Path, help="a build folder that has the suite")
    given = parser.parse_args(arguments)
    tests, suite = by_suite.load_killed_by_tests(), by_suite.load()
    wrong = list(mismatches(tests)) + list(by_suite.mismatches(suite))
    names = [mutant["name"] for mutant in tests + suite]
    wrong += [f"{name}: two mutants of this name" for name in set(names) if names.count(name) > 1]
    for sentence in wrong:
        print(f"mutants: {sentence}")
    if wrong or given.match:
        print(f"mutants: {len(names)} listed, {len(wrong)} problems")
        return 1 if wrong else 0

    def chosen(mutants):
        some = [m for m in mutants if not given.words or any(
            word in m["name"] or word in m.get("class", "") for word in given.words)]
        return share(some, given.share) if given.share > 1 else some

    if given.build is None:
        configure()
    alive = 0
    if not given.suite and not given.write and chosen(tests):
        alive += kill_by_tests(chosen(tests))
    if not given.tests and chosen(suite):
        if given.build is None:
            build_or_stop("ringproof-suite")
        alive += kill_by_suite(chosen(suite), given.build or BUILD, given.write)
    return 1 if alive else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
