#!/usr/bin/env python3
"""Writes the seeds of case_file_fuzz, shards_fuzz, onnx_fuzz and capi_fuzz: small sound files and
calls, each with other parts of the format."""

import json
import pathlib
import struct

SIZES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "F8_E4M3": 1, "F8_E5M2": 1,
         "BOOL": 1, "I32": 4, "I64": 8}
INTEGERS = {"BOOL": "B", "I32": "i", "I64": "q"}


def case_file(spec, tensors):
    """Bytes of a file; a tensor is (dtype, shape) for zeros or (dtype, shape, integers)."""
    header, data = {"__metadata__": {"ringproof": json.dumps({"version": 1, **spec})}}, b""
    for name, (dtype, shape, *values) in tensors.items():
        count = 1
        for size in shape:
            count *= size
        body = bytes(count * SIZES[dtype])
        if values:
            body = struct.pack(f"<{count}{INTEGERS[dtype]}", *values[0])
        begin, data = len(data), data + body
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [begin, len(data)]}
    text = json.dumps(header, separators=(",", ":")).encode()
    return struct.pack("<Q", len(text)) + text + data


def problem(batches, heads, kv_heads, queries, keys, dtype="F32"):
    return {"q": (dtype, [batches, heads, queries, 2]), "k": (dtype, [batches, kv_heads, keys, 2]),
            "v": (dtype, [batches, kv_heads, keys, 1])}


def shard(rows, keys, bias):
    n, m = len(rows), len(keys)
    return case_file({"causal": "top_left"}, problem(1, 2, 1, n, m, "BF16") | {
        "out": ("BF16", [1, 2, n, 1]), "lse": ("F32", [1, 2, n]),
        "positions_q": ("I64", [n], rows), "positions_k": ("I64", [m], keys),
        "documents_q": ("I32", [n], [0] * n), "documents_k": ("I32", [m], [0] * m),
        "k_scale": ("F32", [1, 1, 1, 1]), "sinks": ("F32", [2]), "key_lengths": ("I32", [1], [3]),
        "bias": ("F32", bias)})


CASES = {
    "plain": case_file({"causal": "top_left", "contract": "fp32"}, problem(1, 2, 2, 3, 3) | {
        "out": ("F32", [1, 2, 3, 1]), "lse": ("F32", [1, 2, 3])}),
    "packed": case_file({"causal": "bottom_right"}, problem(1, 1, 1, 3, 4) | {
        "cu_seqlens_q": ("I32", [3], [0, 1, 3]), "cu_seqlens_k": ("I32", [3], [0, 2, 4])}),
    "rows": case_file({"layout": "nhd", "window": [2, 0], "softcap": 3, "empty_row": "any"}, {
        "q": ("F8_E4M3", [3, 2, 2]), "k": ("F8_E5M2", [3, 1, 2]), "v": ("F16", [3, 1, 1]),
        "documents_q": ("I32", [3], [0, 1, -1]), "documents_k": ("I32", [3], [1, 0, 0]),
        "positions_q": ("I64", [3], [2, 0, 1]), "positions_k": ("I64", [1, 3], [0, 2, 1]),
        "k_scale": ("F32", [3, 1, 1]), "lse": ("F16", [2, 3])}),
    "everything": case_file({
        "layout": "bnhd", "scale": "0x1p-1", "contract": {"base": "fp32"}, "ranks": 2,
        "lse_base": "2", "ring": {"layout": "zigzag", "order": "up"},
        "about": {"origin": ["seed", {"x": None}]}}, {
        "q": ("F64", [2, 3, 2, 2]), "k": ("F32", [2, 3, 1, 2]), "v": ("BF16", [2, 3, 1, 1]),
        "mask": ("BOOL", [2, 1, 3, 3], [1] * 18), "bias": ("BF16", [3, 3]),
        "alibi_slopes": ("F32", [2, 2]), "sinks": ("F64", [2]),
        "key_lengths": ("I32", [2], [3, 1]), "q_scale": ("F32", [1, 3, 2, 1]),
        "out": ("F32", [2, 3, 2, 1]), "dout": ("F32", [2, 3, 2, 1]), "dlse": ("F32", [2, 2, 3]),
        "dq": ("F32", [2, 3, 2, 2]), "dbias": ("F32", [3, 3]), "dsinks": ("F32", [2])}),
}
SHARDS = {
    "own_keys": (shard([0, 3], [0, 3], [1, 2]), shard([2, 1], [1, 2], [1, 2])),
    "all_keys": (shard([1], [0, 1, 2, 3], [1, 4]), shard([0, 3, 2], [3, 2, 1, 0], [3, 4])),
}
# Bytes from which capi_fuzz draws: sizes first. Ones and zeros make sound calls.
CALLS = {"smallest": bytes(64), "ones": bytes([1]) * 256,
         "larger": bytes([0, 1, 1, 2, 2, 2, 1]) + bytes([4, 4, 4] * 200),
         "mixed": bytes(n * n % 251 for n in range(600))}


HERE = pathlib.Path(__file__).parent


def node_test(folder):
    """The model and, in the order in which its node asks for them, the tensors of a node test."""
    files = [folder / "model.onnx"]
    for kind in ("input", "output"):
        files += sorted((folder / "test_data_set_0").glob(f"{kind}_*.pb"))
    pieces = [file.read_bytes() for file in files]
    return b"".join(struct.pack("<I", len(piece)) + piece for piece in pieces)


def main():
    pairs = {name: struct.pack("<I", len(a)) + a + b for name, (a, b) in SHARDS.items()}
    targets = {"case_file_fuzz": CASES, "shards_fuzz": pairs, "capi_fuzz": CALLS,
               "onnx_fuzz": {folder.name.removeprefix("test_attention_"): node_test(folder)
                             for folder in (HERE.parent / "onnx/data").iterdir()
                             if folder.is_dir()}}
    for target, seeds in targets.items():
        folder = HERE / "seeds" / target
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in seeds.items():
            (folder / name).write_bytes(data)


if __name__ == "__main__":
    main()
