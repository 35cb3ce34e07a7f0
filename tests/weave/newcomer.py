#!/usr/bin/env python3
"""A newcomer's run: the commands of the front page and of the tutorials, as printed, in order.

    newcomer.py [--root ROOT] --build BUILD [CHAPTER...]

Exits 1 at the first command that does not work. Every block ```sh of README.md and of tutorials/
(or of the chapters named) is carried out in a folder that looks like a fresh clone whose build is
BUILD; there is no list of commands but the pages. An exercise is given twice, as a reader would:
first with its gaps, where it must refuse, then with the solution in their place. What only builds
is taken as done, since BUILD is just that; of `./run demo` the program is run.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import weave  # noqa: E402

# Commands that build, and what they run when they have.
BUILDING = {"./run build": None, "./run test": None, "./run demo": "build/bin/ringproof-demo"}
EXERCISE = re.compile(r"\./run exercise (\d\d)$")
# Commands whose exit status is a verdict.
JUDGING = re.compile(r"\bringproof (?:check|explain|fit)\b|\./run suite\b")
VERDICTS = (0, 1, 3, 4)
TIME_LIMIT_SECONDS = 120


class Wrong(Exception):
    """A command that does not do what its page says."""


def pages(root, chapters):
    """The pages of the tutorials in the order of reading; without chapters, all."""
    folder = root / "tutorials"
    if chapters:
        return [page for number in chapters for page in folder.glob(f"{number}_*/README.md")]
    numbered = sorted(folder.glob("[0-9][0-9]_*/README.md"))
    return [root / "README.md", folder / "README.md", *numbered]


def commands(page):
    """The commands of a page: the lines of its blocks ```sh, continued lines joined."""
    lines = page.read_text(encoding="utf-8").splitlines()
    for first, last, language, _ in weave.fenced_blocks(lines):
        if language == "sh":
            text = re.sub(r"\\\n\s*", "", "\n".join(lines[first + 1:last]))
            yield from (re.sub(r"\s+#.*", "", line) for line in text.splitlines() if line.strip())


class Clone:
    """A folder that looks like the repository with its build in build/; answers stay in it."""

    def __init__(self, root, build, folder):
        self.root, self.folder, self.answers = root, folder, folder / "answers"
        self.answers.mkdir()
        for entry in root.iterdir():
            if entry.name != "build":
                (folder / entry.name).symlink_to(entry)
        (folder / "build").symlink_to(build)

    def run(self, command):
        """(exit status, output) of a command."""
        done = subprocess.run(
            ["bash", "-c", command], cwd=self.folder, text=True, timeout=TIME_LIMIT_SECONDS,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            env={**os.environ, "RINGPROOF_ANSWERS": str(self.answers),
                 # Containers run as root, where mpirun asks twice, and have few cores.
                 "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                 "OMPI_MCA_rmaps_base_oversubscribe": "1",
                 "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe"})
        return done.returncode, done.stdout

    def expect(self, command, statuses, words=""):
        status, output = self.run(command)
        silent = not output and not command.startswith("cc ")  # compilers say nothing
        if status not in statuses or words not in output or silent:
            raise Wrong(f"`{command}` exited {status}, not {statuses} with '{words}':\n{output}")

    def work_through(self, command):
        """One command of a page."""
        if command in BUILDING:
            command = BUILDING[command]
            if command is None:
                return
        exercise = EXERCISE.match(command)
        if not exercise:
            if command.startswith("mpirun ") and not shutil.which("mpirun"):
                print(f"newcomer: skipped, no mpirun: {command}")
                return
            self.expect(command, VERDICTS if JUDGING.search(command) else (0,))
            return
        answer = self.answers / f"answer-{exercise[1]}.cpp"
        if answer.exists():
            return  # the page of all chapters shows it first
        self.expect(command, (1,), "checks fail")
        solution, = (self.root / "tutorials").glob(f"{exercise[1]}_*/exercise/solution.cpp")
        shutil.copyfile(solution, answer)
        self.expect(command, (0,), "checks pass")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path("."))
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("chapters", nargs="*")
    options = parser.parse_args()
    root, count = options.root.resolve(), 0
    chosen = pages(root, options.chapters)
    with tempfile.TemporaryDirectory() as folder:
        clone = Clone(root, options.build.resolve(), pathlib.Path(folder))
        for page in chosen:
            for command in commands(page):
                try:
                    clone.work_through(command)
                except (Wrong, subprocess.TimeoutExpired) as wrong:
                    print(f"{page.relative_to(root)}: {wrong}")
                    return 1
                count += 1
    print(f"newcomer: {count} commands of {len(chosen)} pages work as printed")
    return 0 if count else 1


if __name__ == "__main__":
    sys.exit(main())
