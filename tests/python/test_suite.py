"""A Python callable under the property suite."""

import numpy
import pytest
import ringproof
from attention import attention
from ringproof.suite import answered, find_program

HAS_PROGRAM = pytest.mark.skipif(find_program() is None, reason="ringproof-suite is not there")
PLAIN = {"q", "k", "v", "causal", "scale"}


def kernel(problem):
    arguments = problem.arguments
    if set(arguments) - PLAIN or arguments.get("causal") == "bottom_right":
        raise NotImplementedError
    if problem.k.shape[2] == 0:
        raise NotImplementedError
    out, lse = attention(problem.q, problem.k, problem.v, arguments.get("causal") == "top_left",
                         arguments.get("scale"))
    return {"out": out, "lse": lse}


@HAS_PROGRAM
def test_a_conforming_callable_passes():
    result = ringproof.suite(kernel, "fp32", count=1, shrink=0)
    assert result.verdict == "PASS", str(result)


@HAS_PROGRAM
def test_a_broken_callable_fails_with_a_case_that_repeats_it(tmp_path):
    def broken(problem):
        answers = kernel(problem)
        answers["out"] *= numpy.float32(1.001)
        return answers

    result = ringproof.suite(broken, "fp32", only="values-of-one", count=1, shrink=1,
                             failures=tmp_path / "failures")
    assert result.verdict == "FAIL"
    assert "repeat: ringproof.suite(kernel, 'fp32', only='values-of-one', seed=" in str(result)
    case = next((tmp_path / "failures").glob("*.safetensors"))
    assert ringproof.check(case, contract="fp32").verdict == "FAIL"


@HAS_PROGRAM
def test_a_callable_that_raises_breaks_a_law_with_its_words(tmp_path):
    def raises(problem):
        kernel(problem)
        raise RuntimeError("the kernel gave up")

    result = ringproof.suite(raises, "fp32", count=1, shrink=0, only="values-of-one",
                             failures=tmp_path / "failures")
    assert result.verdict == "FAIL"
    assert "RuntimeError: the kernel gave up" in str(result)


@HAS_PROGRAM
def test_an_unknown_contract_is_a_value_error():
    with pytest.raises(ValueError, match="fp23"):
        ringproof.suite(kernel, "fp23")


def test_a_missing_program_is_said(monkeypatch):
    monkeypatch.delenv("RINGPROOF_SUITE", raising=False)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(RuntimeError, match="ringproof-suite"):
        ringproof.suite(kernel, "fp32")


def test_one_case_file_is_answered_by_hand(tmp_path):
    given, asked = tmp_path / "given.safetensors", tmp_path / "asked.safetensors"
    q = numpy.ones((1, 1, 2, 4), numpy.float32)
    ringproof.write(given, q=q, k=q, v=q)
    assert answered(kernel, given, asked) == (0, "")
    assert (ringproof.read(asked).out == 1).all()
    assert answered(lambda problem: {"output": problem.q}, given, asked)[0] == 1

    def unsupported(problem):
        raise NotImplementedError("no heads of 4")

    assert answered(unsupported, given, asked) == (77, "no heads of 4")
