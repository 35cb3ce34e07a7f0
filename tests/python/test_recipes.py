"""docs/recipes/: what the pages print runs and says what the pages say."""

import numpy
import pytest
import recipes

import ringproof


def test_one_line_in_place_of_a_tolerance():
    recipes.flash_test()


def test_blocks_of_an_8_bit_cache_have_factors_and_swapped_ones_are_refused():
    right, wrong = recipes.cache_of_8_bits()
    assert right.verdict == "PASS", str(right)
    assert wrong.verdict == "FAIL", str(wrong)


def test_shards_carry_positions(tmp_path):
    recipes.ring_shards(tmp_path)
    shards = sorted(tmp_path.iterdir())
    assert len(shards) == 4
    assert ringproof.read(shards[1]).positions_q.tolist()[:4] == [4, 5, 6, 7]


def test_a_logged_call_becomes_a_case(tmp_path):
    numpy_files = pytest.importorskip("safetensors.numpy")
    q, k, v = (recipes.some(rows, heads, 16, dtype=numpy.float16)
               for rows, heads in ((5, 4), (9, 2), (9, 2)))
    out, _ = recipes.attention(*(array.swapaxes(0, 1)[None] for array in (q, k, v)), causal=True,
                               offset=4)
    numpy_files.save_file({"arg_0": q, "arg_1": k, "arg_2": v}, tmp_path / "inputs.safetensors")
    out = numpy.ascontiguousarray(out[0].swapaxes(0, 1).astype(numpy.float16))
    numpy_files.save_file({"result": out}, tmp_path / "outputs.safetensors")
    recipes.flashinfer_call(tmp_path, tmp_path / "case.safetensors")
    assert ringproof.check(tmp_path / "case.safetensors").verdict == "PASS"


@pytest.mark.parametrize("package, recipe", [("torch", recipes.torch_sdpa),
                                             ("fla", recipes.triton_kernel),
                                             ("jax", recipes.jax_attention)])
def test_recipes_of_large_packages(package, recipe):
    pytest.importorskip(package)
    report = recipe()
    assert report.verdict == "PASS", str(report)
