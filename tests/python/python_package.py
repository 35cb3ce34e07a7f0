#!/usr/bin/env python3
"""Installs the package into an environment of its own and runs pytest there.

    python_package.py BUILD [PYTEST ARGUMENT...]

The wheel is built from this repository with the judge's libraries that BUILD already holds. Exit
status 77, with one line that says why, where there is no venv, no header of Python or no registry;
with "python" in RINGPROOF_REQUIRE that is an error.
"""

import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
REQUIREMENTS = ["scikit-build-core>=0.10", "nanobind>=2.4", "numpy", "ml_dtypes", "pytest",
                "nbclient", "ipykernel", "mypy", "safetensors"]
SKIPPED = 77


def run(*words, **options):
    return subprocess.run([str(word) for word in words], check=False, **options)


def skip(reason):
    required = "python" in os.environ.get("RINGPROOF_REQUIRE", "").split()
    print(f"python_package: {'required, but' if required else 'skipped,'} {reason}")
    sys.exit(1 if required else SKIPPED)


def last_line(ended):
    lines = (ended.stdout + ended.stderr).strip().splitlines()
    return lines[-1] if lines else f"exit status {ended.returncode}"


def environment(folder):
    """The Python of a virtual environment with the requirements in it."""
    python = folder / "bin" / "python"
    if not python.exists():
        made = run(sys.executable, "-m", "venv", "--clear", folder, capture_output=True, text=True)
        if made.returncode:
            skip(f"no virtual environment can be made (python3-venv): {last_line(made)}")
    installed = run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
                    *REQUIREMENTS, capture_output=True, text=True)
    if installed.returncode:
        skip(f"pip cannot install what the tests need: {last_line(installed)}")
    header = run(python, "-c", "import pathlib, sys, sysconfig; sys.exit(not pathlib.Path("
                 "sysconfig.get_path('include'), 'Python.h').exists())")
    if header.returncode:
        skip("Python.h is not there (python3-dev)")
    return python


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    python = environment(build / "python" / "venv")
    built = run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
                "--no-build-isolation", "--no-deps", "--force-reinstall", ROOT,
                "-C", f"build-dir={build / 'python' / 'wheel'}",
                "-C", f"cmake.define.RINGPROOF_ROOMS={build / 'rooms.cmake'}")
    if built.returncode:
        sys.exit(built.returncode)
    sys.exit(run(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", ROOT / "tests" / "python",
                 *sys.argv[2:], cwd=build / "python").returncode)


if __name__ == "__main__":
    main()
