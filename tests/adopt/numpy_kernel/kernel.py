#!/usr/bin/env python3
"""Attention in NumPy as a command: kernel.py IN OUT turns a case file into an answered one.

A case file is 8 bytes with the length of a JSON header, the header, and the numbers. Only plain
problems, a causal mask and a scale are taken; anything else ends with exit status 77.
"""

import json
import math
import sys

import numpy

NOT_SUPPORTED = 77


def read(path):
    data = open(path, "rb").read()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + size])
    spec = json.loads(header.pop("__metadata__")["ringproof"])
    if any(entry["dtype"] != "F32" for entry in header.values()):
        sys.exit(NOT_SUPPORTED)
    return spec, {name: numpy.frombuffer(data, numpy.float32, math.prod(entry["shape"]),
                                         8 + size + entry["data_offsets"][0])
                  .reshape(entry["shape"]) for name, entry in header.items()}


def write(path, spec, tensors):
    header, end = {"__metadata__": {"ringproof": json.dumps(spec)}}, 0
    for name, tensor in tensors.items():
        header[name] = {"dtype": "F32", "shape": tensor.shape,
                        "data_offsets": [end, end + tensor.nbytes]}
        end += tensor.nbytes
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        file.writelines(tensor.tobytes() for tensor in tensors.values())


def attention(q, k, v, scale, causal):  # [B, H, Nq, D], [B, Hkv, Nk, D], [B, Hkv, Nk, Dv]
    group = q.shape[1] // k.shape[1]
    k, v = k.repeat(group, axis=1), v.repeat(group, axis=1)
    scores = numpy.float32(scale) * (q @ k.swapaxes(2, 3))
    if causal == "top_left":
        scores[..., ~numpy.tri(*scores.shape[2:], dtype=bool)] = -numpy.inf
    top = scores.max(axis=3, keepdims=True)
    weights = numpy.exp(scores - top)
    total = weights.sum(axis=3, keepdims=True)
    return (weights @ v) / total, (top + numpy.log(total))[..., 0]


spec, given = read(sys.argv[1])
if given.keys() != {"q", "k", "v"} or spec.keys() - {"version", "scale", "causal"} \
        or spec.get("causal") == "bottom_right" or given["k"].shape[2] == 0:
    sys.exit(NOT_SUPPORTED)
scale = float.fromhex(spec["scale"]) if "scale" in spec else given["q"].shape[3] ** -0.5
out, lse = attention(given["q"], given["k"], given["v"], scale, spec.get("causal"))
write(sys.argv[2], spec, {"out": out, "lse": lse})
