#!/usr/bin/env python3
"""Runs the adoption examples as they are printed.

    test_adopt.py documented_path|numpy_kernel|jax_attention|cmake_project BUILD RINGPROOF
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
SKIPPED = 77


def run(words, **more):
    print("+", words if isinstance(words, str) else " ".join(map(str, words)), flush=True)
    return subprocess.run(words, text=True, capture_output=True, check=False, **more)


def expect(condition, done):
    if not condition:
        print(done.stdout, done.stderr, sep="\n")
        sys.exit(1)


def block(page):
    """The lines of the first shell block of a page."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.search(r"```sh\n(.*?)```", text, re.DOTALL).group(1).splitlines()


def documented_path(build, _):
    """docs/your-kernel.md: at most three commands and ten lines to the first verdict."""
    lines = block("docs/your-kernel.md")
    assert 1 <= len(lines) <= 3, lines
    body = (HERE / "c_kernel/adapter.c").read_text(encoding="utf-8").splitlines()
    assert len([line for line in body if line and not line.startswith("/*")]) <= 10
    made = ROOT / "my_kernel.so"
    try:
        for line in lines:
            done = run(line, shell=True, cwd=ROOT, env={**os.environ, "RINGPROOF_BUILD": build})
            expect(done.returncode == 0, done)
        expect("PASS" in done.stdout and " FAIL" not in done.stdout, done)
        expect("needs softcap" in done.stdout, done)
    finally:
        made.unlink(missing_ok=True)


def python_with(*modules, among=(sys.executable,), required=False):
    """The first Python that has the modules; without one a skip, or an error where required."""
    for python in among:
        words = [python, "-c", f"import {', '.join(modules)}"]
        if pathlib.Path(python).exists() and run(words).returncode == 0:
            return python
    print(f"skipped: no Python here has {', '.join(modules)}")
    sys.exit(1 if required else SKIPPED)


def numpy_kernel(_, program):
    python = python_with("numpy", among=(sys.executable, "/usr/bin/python3"),
                         required="python" in os.environ.get("RINGPROOF_REQUIRE", "").split())
    kernel = f"{python} {HERE / 'numpy_kernel/kernel.py'} {{in}} {{out}}"
    laws = ["default-scale", "causal-top-left", "ascending", "grouped-heads", "index-coded"]
    words = [program, "suite", "--command", kernel, "--contract", "fp32-simd", "--count", "1"]
    done = run(words + [word for law in laws for word in ("--only", law)])
    expect(done.returncode == 0 and done.stdout.count("PASS") == len(laws) + 1, done)


def jax_attention(_, program):
    """What holds for JAX on a processor, and what its code says cannot (README)."""
    python = python_with("numpy", "jax", "ringproof")
    suite = pathlib.Path(program).parent / "ringproof-suite"
    kernel = [python, HERE / "jax_attention/kernel.py"]
    environment = {**os.environ, "RINGPROOF_SUITE": str(suite)}
    done = run([*kernel, "no-mask", "shift", "causal-top-left", "grouped-heads", "ascending"],
               env=environment)
    expect(done.returncode == 0 and "5 laws: 5 PASS" in done.stdout, done)
    done = run([*kernel, "nothing-visible"], env=environment)
    expect(done.returncode == 1 and "FAIL      nothing-visible" in done.stdout, done)


def cmake_project(build, _):
    with tempfile.TemporaryDirectory() as folder:
        prefix, mine = f"{folder}/prefix", f"{folder}/build"
        for words in (["cmake", "--install", build, "--prefix", prefix],
                      ["cmake", "-S", HERE / "cmake_project", "-B", mine, "-G", "Ninja",
                       f"-DCMAKE_PREFIX_PATH={prefix}"],
                      ["cmake", "--build", mine],
                      ["ctest", "--test-dir", mine, "--output-on-failure"]):
            done = run(words)
            expect(done.returncode == 0, done)
        for name in ("laws", "generate", "cases", "own_cases"):
            expect(re.search(rf"attention\.{name} \.+ +Passed", done.stdout), done)
        expect("0 tests failed out of 6" in done.stdout, done)


if __name__ == "__main__":
    {"documented_path": documented_path, "numpy_kernel": numpy_kernel,
     "jax_attention": jax_attention,
     "cmake_project": cmake_project}[sys.argv[1]](sys.argv[2], sys.argv[3])
