"""Arrays of every kind: types, strides, no copies, and errors that name the tensor."""

import ml_dtypes
import numpy
import pytest
import ringproof
from attention import attention, tensors
from ringproof._arrays import handed_over

TYPES = {"float64": "fp64", "float32": "fp32", "float16": "fp16-flash",
         "bfloat16": "bf16-flash"}


class Foreign:
    """An array of another framework: the protocol and nothing else."""

    def __init__(self, array, device=1):
        self.array, self.device, self.detached = array, device, False
        self.requires_grad = True
        self.shape = array.shape

    def detach(self):
        self.detached = True
        self.requires_grad = False
        return self

    def __dlpack_device__(self):
        return self.device, 0

    def __dlpack__(self, **options):
        if self.requires_grad:
            raise RuntimeError("a tensor that records gradients gives no memory away")
        return self.array.__dlpack__(**options)


@pytest.mark.parametrize("name", TYPES)
def test_every_type_of_number_is_judged_as_it_is_stored(name):
    dtype = numpy.dtype(getattr(ml_dtypes, name, name))
    q, k, v = (array.astype(dtype) for array in tensors())
    out = ringproof.truth(q, k, v)["out"].rounded.astype(dtype)
    report = ringproof.check(q, k, v, out=out, contract=TYPES[name])
    assert report.verdict == "PASS", str(report)
    assert report.answers["out"]["judged_type"] == {"float64": "F64", "float32": "F32",
                                                    "float16": "F16", "bfloat16": "BF16"}[name]


def test_an_eight_bit_cache_with_factors_is_read():
    q, k, v = tensors()
    keys = k.astype(ml_dtypes.float8_e4m3fn)
    factor = numpy.full((1, 1, 1, 1), 0.5, numpy.float32)
    out, _ = attention(q, keys.astype(numpy.float32) * factor, v)
    report = ringproof.check(q, keys, v, k_scale=factor, out=out, contract="fp32")
    assert report.verdict == "PASS", str(report)


def test_memory_is_not_copied():
    q, _, _ = tensors()
    for array in (q, q[:, :, ::2], q.swapaxes(1, 2), q.astype(ml_dtypes.bfloat16)):
        handed, _ = handed_over("q", array)
        assert numpy.shares_memory(handed, array)


def test_strides_are_followed():
    q, k, v = tensors(queries=12, keys=12)
    wide = [numpy.repeat(array, 2, axis=3) for array in (q, k, v)]
    views = [array[:, :, ::-1, ::2] for array in wide]  # every second column, rows backwards
    out, lse = attention(*views)
    packed = ringproof.check(*map(numpy.ascontiguousarray, views), out=out, lse=lse,
                             contract="fp32")
    strided = ringproof.check(*views, out=out, lse=lse, contract="fp32")
    assert packed.verdict == "PASS"
    assert strided.to_dict() == packed.to_dict()


def test_layouts_are_views():
    q, k, v = tensors()
    out, lse = attention(q, k, v)
    swapped = [array.swapaxes(1, 2) for array in (q, k, v, out)]
    report = ringproof.check(*swapped[:3], out=swapped[3], lse=lse, layout="bnhd",
                             contract="fp32")
    assert report.verdict == "PASS", str(report)
    packed = [array[0] for array in swapped]
    report = ringproof.check(*packed[:3], out=packed[3], lse=lse[0], layout="nhd",
                             contract="fp32")
    assert report.verdict == "PASS", str(report)


def test_foreign_arrays_are_detached_and_read_in_place():
    arrays = [Foreign(array) for array in tensors()]
    out, _ = attention(*(foreign.array for foreign in arrays))
    report = ringproof.check(*arrays, out=Foreign(out), contract="fp32", causal="none")
    assert report.verdict == "PASS"
    assert all(foreign.detached for foreign in arrays)


def test_arrays_on_a_device_are_copied_to_the_host():
    class OnDevice(Foreign):
        def cpu(self):
            return self.array

    q, k, v = tensors()
    out, _ = attention(q, k, v)
    report = ringproof.check(OnDevice(q, device=2), k, v, out=out, contract="fp32")
    assert report.verdict == "PASS"


def test_byte_order_and_read_only_memory_do_not_matter():
    q, k, v = tensors()
    out, _ = attention(q, k, v)
    out.flags.writeable = False
    report = ringproof.check(q.astype(">f4"), k, v, out=out, contract="fp32")
    assert report.verdict == "PASS"


def test_integers_of_any_width_and_lists_will_do():
    q, k, v = tensors()
    out, _ = attention(q, k[:, :, :5], v[:, :, :5])
    for lengths in ([5], numpy.array([5], numpy.uint8), numpy.array([5], numpy.int64)):
        report = ringproof.check(q, k, v, key_lengths=lengths, out=out, contract="fp32")
        assert report.verdict == "PASS", str(report)


@pytest.mark.parametrize("wrong", [
    {"k": "no array"}, {"v": object()}, {"q": numpy.zeros((1, 2, 9, 8), complex)},
    {"k": numpy.zeros((1, 2, 9, 7), numpy.float32)}, {"out": numpy.zeros(3, numpy.float32)},
    {"mask": numpy.zeros((9, 9), numpy.float32)}, {"bias": numpy.zeros((3, 9), numpy.float32)},
    {"positions_q": numpy.zeros(9, numpy.float32)}, {"key_lengths": [2**40]},
    {"v": numpy.zeros((1, 2, 9, 8, 1), numpy.float32)}, {"lse": numpy.zeros((1, 2, 9), bool)},
    {"sinks": numpy.zeros(2, numpy.float16)},
], ids=lambda wrong: next(iter(wrong)))
def test_bad_input_is_a_value_error_that_names_the_tensor(wrong):
    q, k, v = tensors()
    out, _ = attention(q, k, v)
    arguments = {"q": q, "k": k, "v": v, "out": out, "contract": "fp32"} | wrong
    with pytest.raises(ValueError, match=rf"\b{next(iter(wrong))}\b"):
        ringproof.check(**arguments)
