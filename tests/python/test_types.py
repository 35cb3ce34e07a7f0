"""The type stubs: a type checker accepts right uses and refuses wrong ones; stub equals module."""

import pathlib
import subprocess
import sys

import pytest

pytest.importorskip("mypy")
HERE = pathlib.Path(__file__).parent


def mypy(*words, folder):
    return subprocess.run([sys.executable, "-m", *words], capture_output=True, text=True,
                          cwd=folder, check=False)


def test_a_type_checker_refuses_what_is_wrong_and_nothing_else(tmp_path):
    source = HERE / "typed_use.py"
    refused = source.read_text(encoding="utf-8").splitlines().index("# refused below") + 1
    ended = mypy("mypy", "--strict", "--allow-any-generics", source, folder=tmp_path)
    lines = {int(line.split(":")[1]) for line in ended.stdout.splitlines() if ": error:" in line}
    assert lines == set(range(refused + 1, refused + 5)), ended.stdout + ended.stderr


def test_the_stub_of_the_package_is_what_the_package_is(tmp_path):
    ended = mypy("mypy.stubtest", "ringproof", "--ignore-missing-stub",
                 "--ignore-positional-only", folder=tmp_path)
    wrong = [line for line in ended.stdout.splitlines() if line.startswith("error: ringproof.")
             and "_core.Judgement" not in line]
    assert not wrong, ended.stdout + ended.stderr
