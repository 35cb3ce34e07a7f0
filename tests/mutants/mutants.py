#!/usr/bin/env python3
"""Plants faults: each must be caught by what is named for it.

    mutants.py [WORD...]      all mutants, or those whose name, class, file or list has a word
    mutants.py --suite ...    only those that the property suite kills (suite_mutants.json)
    mutants.py --tests ...    only those that a test case kills (the other lists)
    mutants.py --share N      one part of N, of every list (CI): another with each commit
    mutants.py --seconds S    no mutant begins after so many seconds
    mutants.py --unedited     no fault is planted: every killer must pass, compiled the same way
    mutants.py --write        writes what was seen: kills.json, killed.json, docs/faults.md
    mutants.py --match        builds nothing: does every mutant match once, does its killer exist?

A mutant is an edit as data: in `file`, `from` becomes `to`. It must match exactly once and compile.
Those with a `law` are by_suite.py's, those with a `killer` by_test.py's. The sources and the build
folder stay as they are. Exit code 1: something survives, or nothing was judged.
"""

import argparse
import concurrent.futures
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "support")]
import by_suite  # noqa: E402
import by_test  # noqa: E402
import matrix  # noqa: E402
import turn  # noqa: E402

ROOT = HERE.parent.parent
UNEDITED = "passes unedited"
COUNT = 3  # problems on which a law is tried


def problems(suite, tests):
    """What is wrong with the lists, as sentences."""
    yield from by_suite.mismatches(suite)
    yield from by_test.mismatches(tests)
    names = [mutant["name"] for mutant in suite + tests]
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield f"{name}: two mutants of this name"


def configure(folder):
    subprocess.run(["cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", "-DRINGPROOF_TESTS=ON"],
                   check=True, stdout=subprocess.DEVNULL)


def build(folder, programs, jobs):
    """Brings the programs up to date."""
    done = subprocess.run(["ninja", "-C", folder, "-j", str(jobs), *sorted(programs)],
                          **by_test.QUIET)
    if done.returncode:
        raise SystemExit(f"mutants: the unedited sources do not compile:\n{done.stdout}")


def program_of(mutant):
    return "bin/ringproof-suite" if "law" in mutant else f"tests/{mutant['program']}"


def built_here(folder, chosen):
    """Without those whose program the build folder does not make: an optional part is missing."""
    programs = {program_of(mutant) for mutant in chosen}
    absent = {program for program in programs if subprocess.run(
        ["ninja", "-C", folder, "-t", "query", program], **by_test.QUIET).returncode}
    for program in sorted(absent):
        count = sum(program_of(mutant) == program for mutant in chosen)
        print(f"mutants: skipped {count}: {program} is not built here")
    return [mutant for mutant in chosen if program_of(mutant) not in absent]


def records(folder, chosen, clock, unedited, jobs):
    """Judges mutants; yields (mutant, record) in their order, None for those that the time was over
    for."""
    laws = by_suite.Workshop(folder) if any("law" in mutant for mutant in chosen) else None
    cases = by_test.Workshop(folder)
    if laws is not None:
        by_suite.clean(laws, COUNT)

    def record_of(mutant):
        if clock.over():
            return None
        if "law" in mutant:
            return by_suite.judge(laws, mutant, COUNT)
        if not unedited:
            return cases.judge(mutant)
        record = cases.judge(mutant | {"to": mutant["from"]})
        turned = {"killed": "FAILS without any fault", "SURVIVES": UNEDITED}
        return record | {"verdict": turned.get(record["verdict"], record["verdict"])}

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        waiting = [(mutant, pool.submit(record_of, mutant)) for mutant in chosen]
        for mutant, record in waiting:
            yield mutant, record.result()


class Score:
    """What was seen of each list, and whether it is well."""

    def __init__(self, well):
        self.well = well
        self.lists = {}  # list -> [judged, well]
        self.slowest = (0.0, "nothing")
        self.seen = {}  # name -> record

    def add(self, mutant, record):
        right = record["verdict"] == self.well
        counts = self.lists.setdefault(mutant["list"], [0, 0])
        counts[0] += 1
        counts[1] += right
        self.seen[mutant["name"]] = record
        self.slowest = max(self.slowest, (record["seconds"], mutant["name"]))
        text = mutant.get("what", mutant.get("fault"))
        laws = f" ({len(record['laws'])} laws)" if "laws" in record else ""
        print(f"{record['verdict']:9} {record['seconds']:5.1f} s  {mutant['name']:28} {text}{laws}",
              flush=True)
        if record["log"]:
            print(record["log"])

    def judged(self):
        return sum(judged for judged, _ in self.lists.values())

    def close(self, not_begun):
        """Prints the summary; the exit code."""
        print()
        for name, (judged, well) in sorted(self.lists.items()):
            print(f"mutants: {name}: {well} of {judged} {self.well}")
        right = sum(well for _, well in self.lists.values())
        print(f"mutants: {right} of {self.judged()} {self.well}, the slowest in "
              f"{self.slowest[0]:.0f} s ({self.slowest[1]})")
        for name, record in self.seen.items():
            if record["verdict"] != self.well:
                print(f"mutants: {record['verdict']}: {name}")
        if not_begun:
            print(f"mutants: no time for {not_begun} more")
        return 0 if right == self.judged() and (right or not not_begun) else 1


def arguments_of(words):
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("words", nargs="*")
    for flag in ("--suite", "--tests", "--unedited", "--write", "--match"):
        parser.add_argument(flag, action="store_true")
    parser.add_argument("--share", type=int, default=1)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("-j", "--jobs", type=int,
                        default=int(os.environ.get("RINGPROOF_JOBS", str(os.cpu_count()))))
    parser.add_argument("--build", type=pathlib.Path,
                        help="a build folder that is up to date; without it build/ is brought so")
    return parser.parse_args(words)


def main(words):
    given = arguments_of(words)
    suite, tests = by_suite.load(), by_test.load()
    wrong = list(problems(suite, tests))
    for sentence in wrong:
        print(f"mutants: {sentence}")
    if wrong or given.match:
        print(f"mutants: {len(suite + tests)} listed, {len(wrong)} problems")
        return 1 if wrong else 0

    chosen = ([] if given.tests or given.unedited else suite) + ([] if given.suite else tests)
    chosen = [m for m in chosen if "equivalent" not in m and (not given.words or any(
        word in m[key] for word in given.words for key in ("name", "class", "file", "list")
        if key in m))]
    if given.unedited:  # once for each way of compiling
        chosen = list({(m["file"], m.get("in"), m["killer"]): m for m in chosen}.values())
    if given.share > 1:
        now = turn.turn()
        chosen = turn.share(chosen, given.share, now)
        print(f"mutants: part {now % given.share + 1} of {given.share}: {len(chosen)} mutants")
    clock = turn.Clock(given.seconds)
    folder = (given.build or ROOT / "build").resolve()
    if given.build is None:
        configure(folder)
    chosen = built_here(folder, chosen)
    if given.build is None:
        build(folder, {program_of(mutant) for mutant in chosen}, given.jobs)
    score = Score(UNEDITED if given.unedited else "killed")
    for mutant, record in records(folder, chosen, clock, given.unedited, given.jobs):
        if record is None:
            clock.not_begun += 1
        else:
            score.add(mutant, record)
    laws = [mutant for mutant in chosen if "law" in mutant and mutant["name"] in score.seen]
    if laws:
        kills = {mutant["name"]: score.seen[mutant["name"]]["laws"] for mutant in laws}
        print("\n" + "\n".join(matrix.matrix(laws, kills)))
    if given.write and not given.unedited:
        by_suite.enter(score.seen)
        by_test.enter(score.seen)
        matrix.main(["--write"])
    return score.close(clock.not_begun)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
