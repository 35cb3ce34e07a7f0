"""Seeded problems as case files, with nothing but Python; docs/formats.md explains the format."""

import json
import random
import struct

WIDTH = {"F32": 4, "BF16": 2, "F16": 2, "I32": 4}
VERDICTS = {0: "PASS", 1: "FAIL", 3: "UNDECIDED"}  # by exit status of `ringproof check`
ACCEPTED = ("PASS", "UNDECIDED")


def encode(dtype, numbers):
    """The bytes of a list of numbers; bf16 rounds to nearest even."""
    if dtype == "F32":
        return struct.pack(f"<{len(numbers)}f", *numbers)
    if dtype == "F16":
        return struct.pack(f"<{len(numbers)}e", *numbers)
    if dtype == "I32":
        return struct.pack(f"<{len(numbers)}i", *numbers)
    bits = struct.unpack(f"<{len(numbers)}I", struct.pack(f"<{len(numbers)}f", *numbers))
    return struct.pack(f"<{len(bits)}H", *((b + 0x7FFF + (b >> 16 & 1)) >> 16 for b in bits))


def write(path, tensors, spec):
    """tensors: name -> (dtype, shape, numbers)."""
    header, body = {"__metadata__": {"ringproof": json.dumps(spec)}}, b""
    for name, (dtype, shape, numbers) in tensors.items():
        data = encode(dtype, numbers)
        header[name] = {"dtype": dtype, "shape": shape,
                        "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + body)


def problem(dtype, heads, kv_heads, queries, keys, width, seed, spec=None, extra=None,
            dout=False):
    """(tensors, spec) of normal inputs, and normal upstream gradients if asked for."""
    rng = random.Random(seed)

    def normal(*shape):
        count = 1
        for size in shape:
            count *= size
        return dtype, list(shape), [rng.gauss(0, 1) for _ in range(count)]

    tensors = {"q": normal(1, heads, queries, width), "k": normal(1, kv_heads, keys, width),
               "v": normal(1, kv_heads, keys, width)}
    if dout:
        tensors["dout"] = normal(1, heads, queries, width)
    tensors.update(extra or {})
    return tensors, {"version": 1, **(spec or {})}


def suite(size):
    """name -> (dtype, tensors, spec): every mask and score rule, tails, widths, three types."""
    causal = {"causal": "bottom_right"}
    slopes = {"alibi_slopes": ("F32", [2], [0.25, 0.0625])}
    documents = {f"cu_seqlens_{x}": ("I32", [4], [0, size // 3, size // 3 * 2 + 1, size])
                 for x in "qk"}
    features = {
        "full": ({}, {}), "causal": (causal, {}), "window": ({"window": [17, 5]}, {}),
        "softcap": ({"softcap": 1.5}, {}), "alibi": (causal, slopes),
        "sinks": (causal, {"sinks": ("F32", [2], [0.5, -1.0])}),
        "documents": (causal, documents),
        "lengths": ({}, {"key_lengths": ("I32", [1], [size - 7])}),
    }
    cases = {}
    for number, (name, (spec, extra)) in enumerate(features.items()):
        for dtype in ("BF16", "F16", "F32"):
            width = (32, 64, 128)[number % 3]
            made = problem(dtype, 2, 1, size, size, width, 100 + number, spec, extra,
                           dout=dtype != "F32")
            cases[f"{name}.{dtype.lower()}"] = (dtype, *made)
    return cases
