"""From arrays of any framework to what the extension module reads, and back.

Handing over means naming the type; the memory stays where it is. What NumPy, PyTorch, JAX and their
like cannot say in the array protocol (a number type of ml_dtypes, a tensor that records gradients,
one that lies on a device) is settled here. Shapes are not looked at; the judge does that.
"""

import numpy

# Types of case files, by the names that NumPy and ml_dtypes have for them.
WORDS = {
    "float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16",
    "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2", "bool": "BOOL",
    "int32": "I32", "int64": "I64",
}
NAMES = {word: name for name, word in WORDS.items()}

# Tensors of integers, with the type that case files have for them: any integer array will do.
INTEGERS = {
    "key_lengths": "int32", "cu_seqlens_q": "int32", "cu_seqlens_k": "int32",
    "documents_q": "int32", "documents_k": "int32",
    "positions_q": "int64", "positions_k": "int64",
}
HOST_DEVICES = (1, 3)  # DLPack: the processor's memory, and memory pinned for a device


def handed_over(name, array):
    """(array, type) for the extension module; type is "" where the array's own says it all.

    Raises ValueError naming the tensor where it is no array.
    """
    if name in INTEGERS:
        return _integers(name, array), ""
    if isinstance(array, (list, tuple, float, int)):
        array = numpy.asarray(array)
    if not isinstance(array, numpy.ndarray):
        if not hasattr(array, "__dlpack__"):
            raise ValueError(f"{name}: {type(array).__name__} is no array (NumPy, DLPack)")
        array = _on_host(name, array)
    if not isinstance(array, numpy.ndarray):
        return array, ""
    return _numpy(name, array)


def _on_host(name, array):
    """The array detached and in the processor's memory; the same memory where it lies there."""
    if getattr(array, "requires_grad", False):
        array = array.detach()
    if hasattr(array, "resolve_neg"):  # PyTorch: a sign that is kept aside is no part of the memory
        array = array.resolve_neg()
    try:
        device = int(array.__dlpack_device__()[0])
    except (AttributeError, TypeError):
        return array
    except ValueError as error:  # a tensor of PyTorch that has no memory
        raise ValueError(f"{name}: {error}") from error
    if device in HOST_DEVICES:
        return array
    for method in ("cpu", "get"):  # PyTorch; CuPy
        if hasattr(array, method):
            return getattr(array, method)()
    try:
        return numpy.asarray(array)  # JAX
    except Exception as error:
        raise ValueError(f"{name}: cannot be copied from its device ({error})") from error


def _numpy(name, array):
    """A NumPy array whose type the buffer protocol can say, and the type where it cannot."""
    word = WORDS.get(array.dtype.name)
    if word is None:
        raise ValueError(f"{name}: {array.dtype} is none of {', '.join(WORDS)}")
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if any(stride % array.itemsize for stride in array.strides):
        array = numpy.ascontiguousarray(array)  # a field of a record: no whole elements apart
    if array.dtype.kind != "V":
        return array, ""
    return array.view(f"u{array.itemsize}"), word


def _integers(name, array):
    array = numpy.asarray(_on_host(name, array) if hasattr(array, "__dlpack__") else array)
    if array.dtype.kind not in "iu":
        raise ValueError(f"{name}: {array.dtype} is no type of integers")
    converted = array.astype(INTEGERS[name])
    if (converted != array).any():
        raise ValueError(f"{name}: holds integers beyond {INTEGERS[name]}")
    return converted


def number_type(word):
    """The NumPy type of a word like "BF16". Raises ImportError where it needs ml_dtypes."""
    name = NAMES[word]
    if name not in ("bfloat16", "float8_e4m3fn", "float8_e5m2"):
        return numpy.dtype(name)
    try:
        import ml_dtypes
    except ImportError as error:
        raise ImportError(f"{name} arrays of NumPy need ml_dtypes: pip install ml_dtypes"
                          ) from error
    return numpy.dtype(getattr(ml_dtypes, name))


def from_bytes(stored):
    """An array from (bytes, type, shape)."""
    data, word, shape = stored
    return data.view(number_type(word)).reshape(shape)
