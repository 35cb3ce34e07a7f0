"""Truth, fit, audit, generated problems, contracts, and case files."""

import fractions
import math

import ml_dtypes
import numpy
import pytest
import ringproof
from attention import attention, tensors


def test_the_truth_of_a_sum_by_hand_lies_in_its_interval():
    q = numpy.zeros((1, 1, 1, 1), numpy.float32)
    k = numpy.zeros((1, 1, 3, 1), numpy.float32)
    v = numpy.array([1, 2, 4], numpy.float32).reshape(1, 1, 3, 1)
    exact = ringproof.truth(q, k, v)
    low, high = exact["out"].lo[0, 0, 0, 0], exact["out"].hi[0, 0, 0, 0]
    assert fractions.Fraction(low) <= fractions.Fraction(7, 3) <= fractions.Fraction(high)
    assert exact["out"].rounded[0, 0, 0, 0] == numpy.float32(7 / 3)
    assert exact["lse"].rounded[0, 0, 0] == numpy.float32(math.log(3))
    assert exact["out"].undecided == 0


def test_the_truth_has_the_layout_of_the_problem():
    q, k, v = tensors(heads=3, kv_heads=1, queries=4, keys=5)
    plain = ringproof.truth(q, k, v)["out"].lo
    swapped = ringproof.truth(*(array.swapaxes(1, 2) for array in (q, k, v)), layout="bnhd")
    packed = ringproof.truth(*(array.swapaxes(1, 2)[0] for array in (q, k, v)), layout="nhd")
    assert (swapped["out"].lo == plain.swapaxes(1, 2)).all()
    assert (packed["out"].lo == plain.swapaxes(1, 2)[0]).all()
    assert packed["lse"].lo.shape == (3, 4)


def test_gradients_of_the_truth_come_with_an_upstream_gradient():
    q, k, v = tensors()
    exact = ringproof.truth(q, k, v, dout=numpy.ones_like(q), dtype="bfloat16")
    assert set(exact) == {"out", "lse", "dq", "dk", "dv"}
    rounded = exact["dv"].rounded
    assert (rounded.astype(ml_dtypes.bfloat16).astype(float) == rounded).all()
    assert (exact["dv"].lo <= exact["dv"].hi).all() and exact["dv"].lo.shape == v.shape
    with pytest.raises(ValueError, match="dtype"):
        ringproof.truth(q, k, v, dtype="int8")


def test_fit_says_contract_where_the_kernel_is_only_less_exact():
    q, k, v = tensors()
    out = attention(q, k, v)[0].astype(ml_dtypes.bfloat16).astype(numpy.float32)
    found = ringproof.fit(q, k, v, out=out, contract="fp64", only="out")
    assert found.verdict == "FAIL"
    assert found.tightest is None or isinstance(found.tightest, str)
    assert found.tried > 1 and str(found).startswith("FAIL")
    assert "answer " in str(found)


def test_an_audit_shows_what_a_loose_rule_accepts():
    q, k, v = tensors(queries=33, keys=33)
    loose = ringproof.audit({"atol": 10.0}, q, k, v, causal=True)
    tight = ringproof.audit({"rtol": 1e-5, "atol": 1e-6}, q, k, v, causal=True)
    assert "MASK-DROP" in loose.accepted
    assert "MASK-DROP" not in tight.accepted
    assert loose.exact["accepted"] and tight.exact["accepted"]
    assert str(loose)
    with pytest.raises(ValueError, match="rule"):
        ringproof.audit("no such rule", q, k, v)
    with pytest.raises(ValueError, match="atol is -1"):
        ringproof.audit({"atol": -1}, q, k, v)
    with pytest.raises(ValueError, match="atol belongs to close"):
        ringproof.audit({"kind": "cosine", "limit": 0.1, "atol": 1.0}, q, k, v)
    with pytest.raises(TypeError, match="causal"):
        ringproof.audit({"atol": 1.0}, causal=True)


def test_an_audit_accepts_nothing_whose_gradients_it_did_not_compute():
    rule = {"compares": {"out": [{"atol": 10.0}], "dv": [{"atol": 100.0}]},
            "inputs": {"keys": 33, "head_dim": 8}}
    found = ringproof.audit(rule)
    of_forward = next(one for one in found.findings if one["id"] == "SCALE")
    assert of_forward["not_computed"] == ["dv"] and not of_forward["accepted"]
    assert "SCALE" not in found.accepted
    assert "DQ-ZERO" in found.accepted


def test_contracts_have_names_hashes_and_fields():
    assert "bf16-flash" in ringproof.contracts()
    fields = ringproof.contracts("bf16-flash")
    assert ringproof.contract_hash("bf16-flash") == ringproof.contract_hash(str_of(fields))


def str_of(fields):
    import json
    return json.dumps(fields)


def test_threads_are_those_of_the_program(tmp_path):
    with pytest.raises(ValueError, match="threads: Value 1025 not in range 1 to 1024"):
        ringproof.audit("flash-attention", threads=1025)
    with pytest.raises(ValueError, match="threads: Value -1 not in range 1 to 1024"):
        ringproof.gen("vectors", tmp_path / "suite", threads=-1)
    assert not (tmp_path / "suite").exists()


def test_generated_problems_can_be_answered_and_judged():
    names = set()
    for problem in ringproof.gen("quick"):
        names.add(problem.name)
        plain = not set(problem.arguments) - {"q", "k", "v", "dout", "dlse", "layout", "scale"}
        if not plain or problem.arguments.get("layout", "bhnd") != "bhnd":
            continue
        if problem.q.dtype != numpy.float32:
            continue
        out, lse = attention(problem.q, problem.k, problem.v,
                             scale=problem.arguments.get("scale"))
        report = ringproof.check(**problem.arguments, out=out, lse=lse, contract="fp32")
        assert report.verdict in ("PASS", "UNDECIDED"), str(report)
    assert len(names) > 10
    with pytest.raises(ValueError, match="no such suite"):
        ringproof.gen("no such suite")


def test_case_files_come_back_as_they_were(tmp_path):
    q, k, v = (array.astype(ml_dtypes.bfloat16) for array in tensors())
    given = {"q": q, "k": k, "v": v, "window": (3, -1), "scale": 0.1, "causal": "top_left",
             "mask": numpy.tri(9, dtype=bool), "key_lengths": [7]}
    ringproof.write(tmp_path / "case.safetensors", contract="bf16-flash", **given)
    read = ringproof.read(tmp_path / "case.safetensors")
    assert read.contract == "bf16-flash"
    assert read.arguments["window"] == (3, -1) and read.arguments["scale"] == 0.1
    for name in ("q", "k", "v", "mask", "key_lengths"):
        assert (getattr(read, name) == given[name]).all()
    assert read.q.dtype == ml_dtypes.bfloat16
    with pytest.raises(AttributeError, match="bias"):
        read.bias
    with pytest.raises(ValueError, match="case.txt"):
        ringproof.read(tmp_path / "case.txt")
