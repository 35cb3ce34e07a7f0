"""Mutants that one test case must kill: those with a `killer` in the program `program`.

Nothing is copied and nothing rebuilt. The edited file lies in front of the others on the include
path; what includes it is compiled once more, unoptimised, as the build folder compiles it, and
stands before the libraries when the program is linked; of the program only the killer runs. Test
sources other than the killer's keep their objects: their cases do not run. A header that many
sources include is edited for one of them where the mutant says `in`.
"""

import hashlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import tempfile
import time

import entries

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parent.parent
KILLED = HERE / "killed.json"
TEST_CASE = re.compile(r'\bTEST_CASE\s*\(\s*((?:"(?:[^"\\]|\\.)*"\s*)+)')
SECONDS = 120  # a mutant that loops for ever is caught, too
MEMORY = 12 << 20  # KiB of data: and so is one that never stops asking for memory
QUIET = dict(capture_output=True, text=True, errors="replace")


def load():
    """The mutants of all other lists of this folder: those that name a test as killer, or that
    nothing can kill."""
    found = []
    for path in sorted(HERE.glob("*.json")):
        content = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(content, list) and path.name != "suite_mutants.json":
            found += [mutant | {"list": path.name} for mutant in content]
    return found


def fingerprint(mutant):
    """Short for the edit and its killer: a record of another edit counts no more."""
    text = "\0".join(mutant[key] for key in ("file", "from", "to", "killer"))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def killed(mutants):
    """Those that the last full run saw killed, as they are now."""
    seen = json.loads(KILLED.read_text(encoding="utf-8"))
    return [m for m in mutants if "killer" in m and seen.get(m["name"]) == fingerprint(m)]


def enter(records):
    """Keeps in killed.json which of these mutants were killed; what is not listed any more goes."""
    seen = json.loads(KILLED.read_text(encoding="utf-8"))
    now = {}
    for mutant in load():
        name = mutant["name"]
        if name not in records and name in seen:
            now[name] = seen[name]
        elif name in records and records[name]["verdict"] == "killed":
            now[name] = fingerprint(mutant)
    entries.keep(KILLED, now.items())


def test_cases():
    """The name of each test case, its literals joined -> the files that hold one of this name."""
    found = {}
    for path in (ROOT / "tests").rglob("*.cpp"):
        for literals in TEST_CASE.findall(path.read_text(encoding="utf-8")):
            parts = re.findall(r'"((?:[^"\\]|\\.)*)"', literals)
            found.setdefault("".join(parts).replace('\\"', '"'), set()).add(str(path))
    return found


def mismatches(mutants):
    """What is wrong with the lists themselves, as sentences."""
    return entries.mismatches(mutants, "killer", test_cases(), "test case")


def option(words, name, value=None):
    """The word after an option; `value` takes its place if given."""
    at = words.index(name) + 1
    old = words[at]
    if value is not None:
        words[at] = str(value)
    return old


class Plan:
    """How a build folder makes one program: its objects, archives and links, as words."""

    def __init__(self, build, program):
        self.objects, self.archives, self.links = {}, {}, []
        listed = subprocess.run(["ninja", "-C", build, "-t", "commands", f"tests/{program}"],
                                **QUIET, check=True).stdout
        for command in re.split(r"\n| && ", listed):
            if " -c " in command and " -o " in command:
                words = shlex.split(command)
                self.objects[option(words, "-o")] = [w for w in words if "ccache" not in w]
            elif " qc " in command:
                archive, *members = shlex.split(command.split(" qc ")[1])
                self.archives[archive] = members
            elif " -o " in command and ".o " in command:
                self.links.append(shlex.split(command))


class Workshop:
    """A build folder that has the programs, and what ninja knows of it."""

    def __init__(self, build):
        self.build = build
        self.cases = test_cases()
        self.plans = {}
        self.sound = {}  # (program, test case) -> does it pass without any fault?
        self.held = tempfile.TemporaryDirectory(prefix="ringproof-mutants-")  # gone with the object
        # A mutant is no use to a cache; random cases are the same in every run, and not shrunk.
        self.environment = dict(os.environ, CCACHE_DISABLE="1", RC_PARAMS="seed=1 noshrink=1")
        self.needs = {}  # object -> the files it was compiled from
        listed = subprocess.run(["ninja", "-C", build, "-t", "deps"], **QUIET, check=True).stdout
        for block in listed.split("\n\n"):
            first, *files = block.strip().split("\n")
            self.needs[first.split(":")[0]] = {file.strip() for file in files}

    def run(self, words, cwd=None, seconds=None):
        return subprocess.run([str(word) for word in words], cwd=cwd or self.build, timeout=seconds,
                              env=self.environment, **QUIET)

    def plan(self, program):
        if program not in self.plans:
            self.plans[program] = Plan(self.build, program)
        return self.plans[program]

    def compile(self, mutant, plan, folder):
        """Plants the fault; object of the build folder -> the one with the fault in it."""
        text = (ROOT / mutant["file"]).read_text(encoding="utf-8")
        edited = folder / "source" / mutant["file"]
        edited.parent.mkdir(parents=True)
        edited.write_text(text.replace(mutant["from"], mutant["to"]), encoding="utf-8")
        other_tests = set().union(*self.cases.values()) - self.cases[mutant["killer"]]
        only = str(ROOT / mutant["in"]) if "in" in mutant else None
        made = {}
        for target, words in plan.objects.items():
            source = words[-1]
            if str(ROOT / mutant["file"]) not in self.needs.get(target, ()):
                continue
            if source in other_tests or only not in (None, source):
                continue
            made[target] = folder / f"{len(made)}.o"
            words = list(words)
            option(words, "-o", made[target])
            option(words, "-MF", folder / "needs.d")
            words[-1] = edited if source == str(ROOT / mutant["file"]) else source
            words.insert(1, f"-I{folder / 'source'}")
            # The judge's vector targets give the same bits (their tests say so): one will do, even
            # with a single lane, for all mutants but those of the ends of loops.
            one = source.startswith(str(ROOT / "oracle")) and "vectors" not in mutant
            done = self.run([*words, "-O0", *["-DHWY_COMPILE_ONLY_STATIC"] * one])
            if done.returncode:
                return None, done.stderr
        return made, ""

    def link(self, plan, made, folder):
        """Links what holds one of the objects; the last is the program."""
        files = {}
        for words in plan.links:
            linked = {member for word in words for member in [word, *plan.archives.get(word, ())]}
            mine = [made[target] for target in made if target in linked]
            if not mine and not linked & set(files):
                continue
            rest = [files.get(word, word) for word in words if word not in made]
            files[option(words, "-o")] = folder / pathlib.Path(option(words, "-o")).name
            option(rest, "-o", files[option(words, "-o")])
            # In front of all others, so that of what a header defines the edited copy is taken;
            # and a library in the folder is found before the one in the build folder.
            rest[1:1] = [f"-Wl,-rpath,{folder}", *mine]
            done = self.run(rest)
            if done.returncode:
                return None, done.stderr
        return files.get(option(plan.links[-1], "-o")), ""

    def passes(self, program, test_case):
        """True if the test case passes; a crash or an endless loop is a failure."""
        exact = re.sub(r"([\\,\[\]*~])", r"\\\1", test_case)
        try:
            done = self.run(["sh", "-c", f'ulimit -d {MEMORY}; exec "$@"', "sh", program, exact,
                             "--abort"], ROOT, SECONDS)
        except subprocess.TimeoutExpired:
            return False
        if "No test cases matched" in done.stdout + done.stderr:
            raise SystemExit(f"mutants: {program} has no test case '{test_case}'")
        return done.returncode == 0

    def is_sound(self, program, test_case):
        """A killer that fails as the build folder has it, under the same limits, kills nothing."""
        if (program, test_case) not in self.sound:
            path = pathlib.Path(self.build).resolve() / "tests" / program
            self.sound[program, test_case] = self.passes(path, test_case)
        return self.sound[program, test_case]

    def judge(self, mutant):
        """The record of one mutant: its verdict, the compiler's complaint, the seconds it took."""
        begin = time.monotonic()
        if not self.is_sound(mutant["program"], mutant["killer"]):
            return {"verdict": "FAILS without any fault", "log": "",
                    "seconds": time.monotonic() - begin}
        plan = self.plan(mutant["program"])
        with tempfile.TemporaryDirectory(dir=self.held.name) as held:
            folder = pathlib.Path(held)
            made, log = self.compile(mutant, plan, folder)
            program, log = self.link(plan, made, folder) if made else (None, log)
            if program is None:
                verdict = "does not compile" if log else "touches nothing of its program"
            else:
                verdict = "SURVIVES" if self.passes(program, mutant["killer"]) else "killed"
        return {"verdict": verdict, "log": log, "seconds": time.monotonic() - begin}
