"""Verdicts and what is said of them: reports, explanations, saved cases."""

import _thread
import json
import signal
import threading
import time
import xml.etree.ElementTree

import numpy
import pytest
import ringproof
from attention import attention, gradients, tensors
from ringproof.__main__ import main


@pytest.fixture(name="case")
def fixture_case():
    q, k, v = tensors()
    out, lse = attention(q, k, v, causal=True)
    return {"q": q, "k": k, "v": v, "out": out, "lse": lse, "causal": True, "contract": "fp32"}


def test_a_conforming_kernel_passes_and_the_report_says_what_it_means(case):
    report = ringproof.check(**case)
    assert report.verdict == "PASS" and report.passed
    assert report.contract == "fp32"
    assert report.contract_hash == ringproof.contract_hash("fp32")
    assert set(report.answers) == {"out", "lse"}
    assert report.worst["tensor"] in ("out", "lse")
    assert 0 < report.power["gain"] < 1
    assert str(report).startswith("PASS  case\n")
    assert "PASS" in repr(report)


def test_the_dictionary_is_the_json_report(case):
    report = ringproof.check(**case).to_dict()
    assert report["schema"].startswith("ringproof.report/")
    assert report["cases"][0]["answers"][0]["answer"] == "out"
    assert report == json.loads(json.dumps(report))


def test_a_verdict_is_no_truth_value(case):
    with pytest.raises(TypeError, match="verdict"):
        assert ringproof.check(**case)


def test_a_wrong_kernel_is_explained(case):
    case["out"], case["lse"] = attention(case["q"], case["k"], case["v"])
    report = ringproof.explain(**case)
    assert report.verdict == "FAIL"
    assert "MASK-DROP" in [one.id for one in report.explanations]
    assert "explained by MASK-DROP" in str(report)
    with pytest.raises(ringproof.NotCertified, match="MASK-DROP") as raised:
        ringproof.assert_certified(**case)
    assert raised.value.report.verdict == "FAIL"
    assert "MASK-DROP" in "\n".join(str(raised.value).splitlines()[:10])


def test_a_mistake_that_nobody_knows_is_located(case):
    case["out"] = case["out"].copy()
    case["out"][0, 1, 3:6] += 1
    report = ringproof.explain(**case)
    assert "where" in report.explanation_text and "h 1" in str(report)


def test_certified_answers_return_their_report(case):
    assert ringproof.assert_certified(**case).verdict == "PASS"


def test_gradients_are_judged():
    q, k, v = tensors()
    dout = tensors(seed=2)[0]
    dq, dk, dv = gradients(q, k, v, dout)
    report = ringproof.check(q, k, v, dout=dout, dq=dq, dk=dk, dv=dv, contract="fp32")
    assert report.verdict == "PASS", str(report)
    report = ringproof.check(q, k, v, dout=dout, dq=dq, dk=2 * dk, dv=dv, contract="fp32")
    assert report.answers["dk"]["verdict"] == "FAIL"
    assert report.answers["dq"]["verdict"] == "PASS"


def test_causal_true_is_refused_where_it_has_two_meanings():
    q, k, v = tensors(queries=5, keys=9)
    out, _ = attention(q, k, v, causal=True)
    with pytest.raises(ValueError, match="causal"):
        ringproof.check(q, k, v, out=out, causal=True, contract="fp32")
    report = ringproof.check(q, k, v, out=out, causal="top_left", contract="fp32")
    assert report.verdict == "PASS", str(report)


def test_the_scale_is_the_number_itself(case):
    scale = 1 / 3
    case["out"], case["lse"] = attention(case["q"], case["k"], case["v"], True, scale)
    assert ringproof.check(**case, scale=scale).verdict == "PASS"
    assert ringproof.check(**case, scale=numpy.float32(0.25)).verdict == "FAIL"


def test_unknown_arguments_and_missing_ones_say_what_is_wrong(case):
    with pytest.raises(TypeError, match="mask"):
        ringproof.check(**case, maks=1)
    with pytest.raises(ValueError, match="no answer"):
        ringproof.check(case["q"], case["k"], case["v"], contract="fp32")
    with pytest.raises(ValueError, match="no contract"):
        ringproof.check(**case | {"contract": None})
    with pytest.raises(ValueError, match="nearest"):
        ringproof.check(**case | {"contract": "fp23"})
    for window in ((1.5, 0), "ab", 3, (1, 2, 3)):
        with pytest.raises(ValueError, match="window"):
            ringproof.check(**case, window=window)
    with pytest.raises(ValueError, match="scale"):
        ringproof.check(**case, scale="a third")
    with pytest.raises(ValueError, match="precision"):
        ringproof.check(**case, precision="exact")
    for threads in (0, -1, 1025, 10**9, 10**12, "many"):
        with pytest.raises(ValueError, match=f"threads: Value {threads} not in range 1 to 1024"):
            ringproof.check(**case, threads=threads)
    with pytest.raises(ValueError, match='"v".*missing'):
        ringproof.check(case["q"], case["k"], out=case["out"], contract="fp32")


def test_options_reach_the_judge(case):
    report = ringproof.check(**case, only="out", rows=3, seed=7, precision=200, threads=1)
    assert list(report.answers) == ["out"]
    assert report.to_dict()["cases"][0]["rows_judged"] == 3
    demanding = ringproof.check(**case, power=1e-12)
    assert demanding.verdict == "UNDECIDED" and demanding.reason


def test_saved_cases_say_the_same(case, tmp_path):
    case["out"] = case["out"] * numpy.float32(1.01)
    report = ringproof.check(**case)
    assert report.repeat == ""
    report.save(tmp_path / "case.safetensors")
    assert report.repeat == f"python -m ringproof explain {tmp_path / 'case.safetensors'}"
    again = ringproof.check(tmp_path / "case.safetensors")
    assert again.verdict == "FAIL"
    first, second = (one.to_dict()["cases"][0]["answers"] for one in (report, again))
    assert first == second


def test_a_case_file_comes_alone(case, tmp_path):
    path = tmp_path / "case.safetensors"
    ringproof.check(**case).save(path)
    assert ringproof.check(path, only="out", contract="fp32-simd").contract == "fp32-simd"
    assert ringproof.fit(path).verdict == "PASS"
    assert (ringproof.truth(path)["lse"].rounded.shape) == case["lse"].shape
    with pytest.raises(TypeError, match="case file alone"):
        ringproof.check(path, out=case["out"])
    with pytest.raises(ValueError, match="already is a file"):
        ringproof.check(path).save(tmp_path / "other.safetensors")
    with pytest.raises(ValueError, match="absent.safetensors"):
        ringproof.explain(tmp_path / "absent.safetensors")


def test_the_page_and_the_json_report_hold_the_explanation(case):
    case["out"], case["lse"] = attention(case["q"], case["k"], case["v"])
    report = ringproof.explain(**case)
    page = report.to_html()
    assert page.startswith("<!") and "MASK-DROP" in page and "<script" not in page
    assert "MASK-DROP" in json.dumps(report.to_dict())


def test_nothing_is_said_of_arrays_that_changed(case):
    case["out"] = case["out"] + 1
    report = ringproof.check(**case)
    case["q"][0, 0, 0, 0] += 1
    with pytest.raises(ValueError, match="changed"):
        report.explanations
    with pytest.raises(ValueError, match="changed"):
        report.heat_map()


def test_the_picture_is_svg_and_a_notebook_shows_it(case):
    report = ringproof.check(**case)
    root = xml.etree.ElementTree.fromstring(report.heat_map())
    assert root.tag.endswith("svg")
    shown = report._repr_html_()
    assert "<svg" in shown and "PASS" in shown and "<script" not in shown


def test_gradients_are_drawn_too():
    q, k, v = tensors()
    out, _ = attention(q, k, v)
    dout = numpy.random.default_rng(2).standard_normal(out.shape).astype(numpy.float32)
    _, _, dv = gradients(q, k, v, dout)
    given = {"q": q, "k": k, "v": v, "dout": dout, "out": out, "contract": "fp32"}
    right, wrong = ringproof.check(**given, dv=dv), ringproof.check(**given, dv=2 * dv)
    assert (right.verdict, wrong.verdict) == ("PASS", "FAIL")
    assert ">dv: b 0, h 0</text>" in right._repr_html_()
    assert 'class="r' not in right.heat_map() and 'class="r' in wrong.heat_map()
    assert "where, dv" in wrong.to_html()


def test_other_threads_run_while_the_judge_works():
    q, k, v = tensors(heads=1, kv_heads=1, queries=96, keys=96, dim=32)
    out, _ = attention(q, k, v)
    turns, done = [], threading.Event()

    def count():
        while not done.is_set():
            turns.append(1)
            done.wait(0.001)

    other = threading.Thread(target=count)
    other.start()
    before = len(turns)
    ringproof.check(q, k, v, out=out, contract="fp32", precision=256, threads=1)
    during = len(turns) - before
    done.set()
    other.join()
    assert during > 3


def test_the_command_that_repeats_runs(case, tmp_path, capsys):
    path = tmp_path / "case.safetensors"
    ringproof.check(**case).save(path)
    assert main(["check", str(path)]) == 0
    assert capsys.readouterr().out.startswith(f"PASS  {path}\n")
    case["out"], case["lse"] = attention(case["q"], case["k"], case["v"])
    ringproof.check(**case).save(tmp_path / "wrong.safetensors")
    assert main(["explain", str(path), str(tmp_path / "wrong.safetensors")]) == 1
    assert "explained by MASK-DROP" in capsys.readouterr().out
    assert main(["check", str(tmp_path / "absent.safetensors"), str(path)]) == 2
    assert "absent.safetensors" in capsys.readouterr().err


@pytest.fixture(name="interruptible")
def fixture_interruptible():
    """Python's own handler, which is not there where the shell started pytest in the background:
    such a process ignores SIGINT."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_ends_the_judgement():
    q, k, v = tensors(heads=16, kv_heads=16, queries=4096, keys=4096, dim=64)
    out = numpy.zeros_like(q)
    timer = threading.Timer(0.2, _thread.interrupt_main)
    timer.start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        ringproof.check(q, k, v, out=out, contract="fp32")
    assert time.monotonic() - began < 60  # the whole would take many minutes
    timer.join()
