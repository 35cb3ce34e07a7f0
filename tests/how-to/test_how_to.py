#!/usr/bin/env python3
"""The recipes of docs/how-to/, each followed on a copy of the sources, compiled and run.

    test_how_to.py RECIPE BUILD     BUILD is a build folder: its libraries and programs are used

A recipe is copies and patches (recipes.json), which its page shows; the text-equals-code check
keeps page and patch together. Here they are applied, held to the house style, and tried. Exit
status 77: something that the recipe needs was not built.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(ROOT / "tests/style"), str(ROOT / "tutorials/ring")]
import join  # noqa: E402
import sources  # noqa: E402

SKIPPED = 77
# What most recipes need of the sources; those with "everything" get all.
PARTS = ("reference/", "oracle/", "cuda/", "tests/style/", "CMakeLists.txt")
FLAGS = ["-std=c++20", "-O0", "-ffp-contract=off", "-Wall", "-Wextra", "-Werror"]


def run(*words, **more):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, **more)
    if done.returncode != 0:
        line = " ".join(map(str, words))
        raise SystemExit(f"FAIL  {line}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def needed(*paths):
    for path in paths:
        if not path.exists():
            print(f"skipped: {path.name} was not built")
            sys.exit(SKIPPED)


class Copy:
    """A copy of the sources in which a recipe was followed."""

    def __init__(self, folder, build, parts):
        self.root, self.build = pathlib.Path(folder) / "source", build
        self.work = pathlib.Path(folder)
        for path in filter(lambda path: path.startswith(parts), sources.files(ROOT)):
            (self.root / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / path, self.root / path)

    def follow(self, name, recipe):
        page = (ROOT / f"docs/how-to/add-a-{name}.md").read_text(encoding="utf-8")
        touched = set()
        for source, target in recipe.get("copies", {}).items():
            if f"cp {source} {target}" not in page:
                raise SystemExit(f"FAIL  the page does not say cp {source} {target}")
            shutil.copy(self.root / source, self.root / target)
            touched.add(target)
        for patch in recipe["patches"]:
            if f"<!-- code: tests/how-to/{patch} -->" not in page:
                raise SystemExit(f"FAIL  the page does not show {patch}")
            text = (HERE / patch).read_text(encoding="utf-8")
            touched |= {line[6:] for line in text.splitlines() if line.startswith("+++ b/")}
            run("patch", "-p1", "--no-backup-if-mismatch", "-i", HERE / patch, cwd=self.root)
        self.hold_to_style(touched)

    def hold_to_style(self, touched):
        done = subprocess.run([sys.executable, self.root / "tests/style/style.py", self.root,
                               *sorted(touched)], capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"FAIL  against the house style:\n{done.stdout}{done.stderr}")

    def compile(self, output, *inputs, flags=()):
        compiler = os.environ.get("CXX", "c++")
        run(compiler, *FLAGS, *flags, f"-I{self.root}", *inputs, "-o", self.work / output)
        return self.work / output

    def archives(self):
        """What a program that reads and writes case files is linked with."""
        found = [self.build / "reference/libringproof_reference_cli.a",
                 self.build / "oracle/case/libringproof_case.a"]
        needed(*found)
        return found

    def judged(self, program, *options):
        """The program's answer to a small case, before the judge."""
        needed(self.build / "bin/ringproof")
        case, answer = self.work / "case.safetensors", self.work / "answer.safetensors"
        join.write_case(case)
        run(program, case, "-o", answer, *options)
        said = run(self.build / "bin/ringproof", "check", answer)
        if "PASS" not in said:
            raise SystemExit(f"FAIL  not passed: {said}")
        return said.strip().splitlines()[0]


def try_mask(copy):
    return run(copy.compile("mask", HERE / "try_mask.cpp"))


def try_layout(copy):
    words = copy.root / "reference/cli"
    for name in ("tier_options.cpp", "answer_file.cpp"):  # the rest of the command line's words
        copy.compile("unused", words / name, flags=["-fsyntax-only"])
    said = run(copy.compile("layout", HERE / "try_layout.cpp", words / "schedule.cpp", "-lfmt"))
    if "rank 0 owns rows 0-1 6-7 12" not in said:
        raise SystemExit(f"FAIL  {said}")
    return said


def try_kernel(copy):
    parts = [copy.build / "cuda/CMakeFiles/ringproof-cuda.dir/main.cpp.o",
             copy.build / "cuda/libringproof_cuda.a", copy.build / "cuda/libringproof_cuda_host.a"]
    needed(*parts)
    emulated = ["-DRINGPROOF_CUDA_HOST=1", "-DRINGPROOF_CUDA_CHECKED=1", "-fsanitize=thread",
                "-Wno-unknown-pragmas", "-c", "-x", "c++"]
    objects = [copy.compile(f"{name}.o", copy.root / f"cuda/kernels/{name}.cu", flags=emulated)
               for name in ("registry", "01b_query_in_registers")]
    main_object, tier, host = parts
    program = copy.compile("ringproof-cuda", main_object, *objects, tier, *copy.archives(), host,
                           "-lfmt", "-lboost_context")
    if "query in registers" not in run(program, "--list"):
        raise SystemExit("FAIL  the ladder does not list the step")
    return copy.judged(program, "--kernel", "01b", "--ranks", 2)


def try_tier(copy):
    program = copy.compile("tree", copy.root / "tree/main.cpp", *copy.archives(), "-lfmt")
    return copy.judged(program, "--ranks", 5, "--layout", "zigzag")


def try_fault(copy):
    needed(copy.build / "bin/ringproof-suite")
    return run(sys.executable, copy.root / "tests/mutants/mutants.py", "--suite", "--build",
               copy.build, "sink-rescales-not-l", cwd=copy.root).splitlines()[0]


def main(name, build):
    recipe = json.loads((HERE / "recipes.json").read_text(encoding="utf-8"))[name]
    with tempfile.TemporaryDirectory() as folder:
        parts = ("",) if recipe.get("everything") else PARTS
        copy = Copy(folder, pathlib.Path(build).resolve(), parts)
        copy.follow(name, recipe)
        print(globals()[f"try_{name}"](copy).strip())


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
