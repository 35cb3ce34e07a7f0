"""Case files for tests of reports: one right, one wrong, one broken, one without an answer.

Written with the standard library, as anything that can write safetensors would.
"""

import json
import math
import random
import struct

ROWS, COLUMNS = 6, 4


def attention(q, k, v, sees):
    """Rows of out: [ROWS, COLUMNS], in binary64."""
    out = []
    for i, query in enumerate(q):
        scores = [sum(a * b for a, b in zip(query, key)) / math.sqrt(COLUMNS)
                  for j, key in enumerate(k) if sees(i, j)]
        weights = [math.exp(score - max(scores)) for score in scores]
        values = [v[j] for j in range(ROWS) if sees(i, j)]
        out.append([sum(w * value[c] for w, value in zip(weights, values)) / sum(weights)
                    for c in range(COLUMNS)])
    return out


def write(path, spec, tensors):
    header, data = {"__metadata__": {"ringproof": json.dumps(spec)}}, b""
    for name, rows in tensors.items():
        numbers = [x for row in rows for x in row]
        header[name] = {"dtype": "F32", "shape": [1, 1, ROWS, COLUMNS],
                        "data_offsets": [len(data), len(data) + 4 * len(numbers)]}
        data += struct.pack(f"<{len(numbers)}f", *numbers)
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def write_all(folder):
    """Paths by what the verdict on them is."""
    draw = random.Random(1)
    q, k, v = ([[struct.unpack("<f", struct.pack("<f", draw.gauss(0, 1)))[0]
                 for _ in range(COLUMNS)] for _ in range(ROWS)] for _ in range(3))
    spec = {"version": 1, "causal": "top_left", "contract": "fp32"}
    right = attention(q, k, v, lambda i, j: j <= i)
    wrong = attention(q, k, v, lambda i, j: j <= i + 1)
    problem = {"q": q, "k": k, "v": v}
    paths = {verdict: folder / f"{name}.safetensors"
             for verdict, name in (("PASS", "right"), ("FAIL", "a <wrong> & \"odd\" name"),
                                   ("BAD INPUT", "broken"), ("SKIPPED", "problem"))}
    write(paths["PASS"], spec, {**problem, "out": right})
    write(paths["FAIL"], spec, {**problem, "out": wrong})
    write(paths["SKIPPED"], {"version": 1}, problem)
    paths["BAD INPUT"].write_bytes(b"no case")
    return paths
