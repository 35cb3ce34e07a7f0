#!/usr/bin/env python3
"""Plants faults in a copy of the sources: each must be caught by what is named for it.

    mutants.py [NAME...]      all mutants, or those whose name or fault contains a word
    mutants.py --suite ...    only those that the property suite kills (suite_mutants.json)
    mutants.py --tests ...    only those that a unit test kills (the other lists)
    mutants.py --share N      the part whose turn it is (CI): of N parts of what the suite kills,
                              and of what tests kill one program's, a program more each commit
    mutants.py --seconds S    no mutant begins after so many seconds
    mutants.py --write        all that the suite kills, or those of the words; then kills.json and
                              docs/faults.md
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
import time

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


def build(program, seconds=None):
    """True if the program compiles, and the log. Throws subprocess.TimeoutExpired."""
    jobs = os.environ.get("RINGPROOF_JOBS", str(os.cpu_count()))
    done = subprocess.run(["ninja", "-C", BUILD, "-j", jobs, program], capture_output=True,
                          text=True, timeout=seconds)
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


def turn():
    """A number that grows by one with each commit, so that a rerun judges the same mutants. What a
    clone without history cannot count, it takes from the commit's name."""
    def git(*words):
        return subprocess.run(["git", "-C", ROOT, *words], capture_output=True,
                              text=True).stdout.strip()
    if git("rev-parse", "--is-shallow-repository") == "false":
        return int(git("rev-list", "--count", "HEAD") or "0")
    return int(git("rev-parse", "HEAD") or "0", 16)


def share(mutants, parts):
    """The part of a list whose turn it is. Building a test program takes longer than judging its
    mutants: of those killed by tests, one program's, each time from another place on."""
    now = turn()
    programs = sorted({mutant["program"] for mutant in mutants if "program" in mutant})
    if not programs:
        return mutants[now % parts::parts]
    some = [m for m in mutants if m["program"] == programs[now % len(programs)]]
    first = now // len(programs) * max(1, len(some) // parts) % len(some)
    return some[first:] + some[:first]


class Clock:
    """The time that is left, and how many mutants it was too short for."""

    def __init__(self, seconds):
        self.end = None if seconds is None else time.monotonic() + seconds
        self.not_begun = 0

    def left(self):
        return None if self.end is None else max(0.0, self.end - time.monotonic())

    def over(self):
        return self.left() == 0

    def close(self, judged):
        if self.not_begun:
            print(f"mutants: no time for {self.not_begun} more")
        return 1 if self.not_begun and not judged else 0


def configure():
    copy_sources()
    subprocess.run(["cmake", "-S", COPY, "-B", BUILD, "-G", "Ninja", "-DRINGPROOF_TUTORIALS=OFF",
                    "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_CXX_FLAGS_RELEASE=-O1"],
                   check=True, stdout=subprocess.DEVNULL)


def build_or_stop(program, seconds=None):
    compiles, log = build(program, seconds)
    if not compiles:
        raise SystemExit(f"mutants: {program} does not compile unedited:\n{log}")


def kill_by_tests(chosen, clock):
    """How many survive the tests that are named for them, and how many were judged."""
    try:
        for program in sorted({mutant["program"] for mutant in chosen}):
            build_or_stop(program, clock.left())
    except subprocess.TimeoutExpired:
        clock.not_begun += len(chosen)
        return 0, 0
    for program, killer in sorted({(mutant["program"], mutant["killer"]) for mutant in chosen}):
        if not passes(program, killer):
            raise SystemExit(f"mutants: '{killer}' fails without any fault")
    alive = judged = 0
    for mutant in chosen:
        if clock.over():
            clock.not_begun += 1
            continue
        result = verdict(mutant)
        judged += 1
        alive += result != "killed"
        print(f"{result:9} {mutant['name']:28} {mutant['fault']}", flush=True)
    print(f"mutants: {judged - alive} of {judged} killed by the test named for them")
    return alive, judged


def kill_by_suite(chosen, build_folder, write, clock):
    """How many survive the law that is named for them, and how many were judged. Prints the kill
    matrix."""
    live = [mutant for mutant in chosen if "equivalent" not in mutant]
    jobs = int(os.environ.get("RINGPROOF_JOBS", str(os.cpu_count())))
    kills, slowest, alive = {}, 0.0, 0
    for mutant, record in by_suite.run(build_folder, live, 3, jobs, clock.over):
        if record is None:
            clock.not_begun += 1
            continue
        kills[mutant["name"]] = record["laws"]
        slowest = max(slowest, record["seconds"])
        alive += record["verdict"] != "killed"
        print(f"{record['verdict']:9} {mutant['class']:16} {mutant['name']:28} {mutant['what']} "
              f"({len(record['laws'])} laws)", flush=True)
        if record["log"]:
            print(record["log"])
    print()
    print("\n".join(matrix.matrix([m for m in live if m["name"] in kills], kills)))
    seen = sum(bool(laws) for laws in kills.values())
    print(f"mutants: the suite kills {seen} of {len(kills)}, {len(kills) - alive} by the law named "
          f"for them; the slowest in {slowest:.0f} s")
    if write and not clock.not_begun:
        known = {mutant["name"] for mutant in by_suite.load()}
        old = by_suite.KILLS.read_text(encoding="utf-8") if by_suite.KILLS.exists() else "{}"
        kills = {name: laws for name, laws in (json.loads(old) | kills).items() if name in known}
        lines = [f"  {json.dumps(n)}: {json.dumps(laws)}" for n, laws in sorted(kills.items())]
        by_suite.KILLS.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
        matrix.main(["--write"])
    return alive, len(kills)


def main(arguments):
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("words", nargs="*")
    for flag in ("--suite", "--tests", "--write", "--match"):
        parser.add_argument(flag, action="store_true")
    parser.add_argument("--share", type=int, default=1)
    parser.add_argument("--seconds", type=float)
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

    clock = Clock(given.seconds)
    by_tests = [] if given.suite or given.write else chosen(tests)
    by_laws = [] if given.tests else chosen(suite)
    if by_tests or given.build is None:
        configure()
    if by_laws and given.build is None:
        build_or_stop("ringproof-suite")
    alive = judged = 0
    if by_laws:
        survivors, count = kill_by_suite(by_laws, given.build or BUILD, given.write, clock)
        alive, judged = alive + survivors, judged + count
    if by_tests:
        survivors, count = kill_by_tests(by_tests, clock)
        alive, judged = alive + survivors, judged + count
    return 1 if alive else clock.close(judged)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
