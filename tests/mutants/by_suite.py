"""Mutants of the reference tier that the property suite alone must kill.

A mutant is one header of reference/, edited, in front of the others on the include path; it is
compiled as a kernel (tests/suite/reference_candidate.hpp) and handed to `ringproof suite`, which is
built once. `law` names the law that must be broken; which others break fills the kill matrix.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import time

import entries

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parent.parent
LIST = HERE / "suite_mutants.json"
KILLS = HERE / "kills.json"
WORK = ROOT / "build/mutants/suite"
SECONDS = 60  # within which a mutant must be dead
LAW = re.compile(r'^    \{"([a-z0-9-]+)",', re.MULTILINE)

# The kernel in fp32 alone, unoptimised: it compiles in two seconds, which is most of the time.
MAIN = """#include "tests/suite/reference_candidate.hpp"
extern "C" RINGPROOF_API int ringproof_candidate_v1(const ringproof_problem* problem,
                                                    ringproof_answer* answer) {
  ringproof::suite::Call<float>(*problem).answer(*answer);
  return 0;
}
"""
HEADERS = ("algorithm array bit cmath concepts cstdint istream limits ostream span sstream "
           "stdexcept string vector")
FLAGS = ["-std=c++20", "-O0", "-ffp-contract=off", "-fPIC", "-w"]


def themes():
    """Law id -> theme, by the file that holds the law."""
    found = {}
    for path in sorted((HERE.parent / "suite").glob("laws_*.cpp")):
        for law in LAW.findall(path.read_text(encoding="utf-8")):
            found[law] = path.stem[len("laws_"):]
    return found


def load():
    return [mutant | {"list": LIST.name} for mutant in json.loads(LIST.read_text(encoding="utf-8"))]


def mismatches(mutants):
    """What is wrong with the list itself, as sentences."""
    return entries.mismatches(mutants, "law", themes(), "law")


def enter(records):
    """Keeps in kills.json which laws these mutants broke."""
    known = {mutant["name"] for mutant in load()}
    kills = json.loads(KILLS.read_text(encoding="utf-8"))
    kills |= {name: record["laws"] for name, record in records.items() if "laws" in record}
    entries.keep(KILLS, ((name, laws) for name, laws in kills.items() if name in known))


class Workshop:
    """What is the same for all mutants: compiler, precompiled headers, suite, library."""

    def __init__(self, build):
        quick = shutil.which("clang++")  # half the time of g++ for unoptimised code
        self.compiler = os.environ.get("CXX") or quick or "c++"
        self.suite = build / "bin/ringproof-suite"
        self.library = build / "oracle/case/libringproof_case.a"
        self.held = tempfile.TemporaryDirectory(prefix="ringproof-mutants-")  # gone with the object
        self.folder = pathlib.Path(self.held.name)
        (self.folder / "main.cpp").write_text(MAIN, encoding="utf-8")
        common = "".join(f"#include <{name}>\n" for name in HEADERS.split())
        common += '#include "oracle/case/dtype.hpp"\n#include "oracle/ringproof.h"\n'
        (self.folder / "common.hpp").write_text("#pragma once\n" + common, encoding="utf-8")
        self.run([*FLAGS, f"-I{ROOT}", "-x", "c++-header", self.folder / "common.hpp", "-o",
                  self.folder / "common.hpp.gch"])

    def run(self, words):
        done = subprocess.run([self.compiler, *map(str, words)], capture_output=True, text=True)
        return done.returncode == 0, done.stderr

    def compile(self, name, mutant):
        """The mutant as a shared object, or the compiler's complaint."""
        overlay = self.folder / name
        overlay.mkdir()
        if mutant is not None:
            target = overlay / mutant["file"]
            target.parent.mkdir(parents=True)
            text = (ROOT / mutant["file"]).read_text(encoding="utf-8")
            target.write_text(text.replace(mutant["from"], mutant["to"]), encoding="utf-8")
        shared = overlay / "kernel.so"
        ok, log = self.run([*FLAGS, "-shared", f"-I{overlay}", f"-I{ROOT}", "-include",
                            self.folder / "common.hpp", self.folder / "main.cpp", self.library,
                            "-o", shared])
        return (shared, "") if ok else (None, log)

    def broken_laws(self, shared, count, seed=1, only=()):
        """Ids of the laws that break, and the suite's text."""
        words = [self.suite, "--so", shared, "--contract", "fp32-ring", "--count", count, "--seed",
                 seed, "--promise", "batch_invariant", "--shrink", 0,
                 "--timeout", 1, "--require", "all", "--failures", ""]
        for law in only:
            words += ["--only", law]
        try:
            done = subprocess.run(list(map(str, words)), capture_output=True, text=True,
                                  timeout=SECONDS)
        except subprocess.TimeoutExpired as late:
            return None, f"longer than {SECONDS} s\n{late.stdout or ''}"
        if done.returncode not in (0, 1, 3):
            return None, done.stdout + done.stderr
        return [line.split()[1] for line in done.stdout.splitlines()
                if line.startswith("FAIL ") and "required, but" not in line], done.stdout


def judge(workshop, mutant, count):
    """The record of one mutant: the named law on `count` problems, then every law on one."""
    begin = time.monotonic()
    shared, log = workshop.compile(mutant["name"], mutant)
    if shared is None:
        return {"verdict": "does not compile", "log": log, "laws": [], "seconds": 0}
    laws, text = workshop.broken_laws(shared, count, only=[mutant["law"]])
    if laws is not None:
        others, text = workshop.broken_laws(shared, 1)
        laws = None if others is None else sorted({*laws, *others})
    seconds = time.monotonic() - begin
    if laws is None:
        return {"verdict": "no report", "log": text, "laws": [], "seconds": seconds}
    named = mutant.get("law") in laws
    verdict = "killed" if named else "killed by others" if laws else "SURVIVES"
    return {"verdict": verdict, "log": "", "laws": laws, "seconds": seconds}


def clean(workshop, seeds):
    """The laws that the unedited tier breaks over so many seeds: none, or something is wrong."""
    shared, log = workshop.compile("unedited", None)
    if shared is None:
        raise SystemExit(f"mutants: the reference does not compile unedited:\n{log}")
    laws, text = workshop.broken_laws(shared, seeds)
    if laws or laws is None:
        raise SystemExit(f"mutants: the unedited reference breaks laws:\n{text}")
