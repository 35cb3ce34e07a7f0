"""One problem of a suite for one implementation: its type of numbers, and the terms it takes.

Nothing here computes attention. What an implementation has no argument for but can be told by a
Boolean mask is folded into one; the judge always gets the problem in its own terms.
"""

import math

import numpy
import ringproof

FOLDED = ("key_lengths", "cu_seqlens_q", "cu_seqlens_k", "positions_q", "positions_k",
          "documents_q", "documents_k", "window", "mask", "causal")
ROWS = ("q", "k", "v", "dout")  # tensors [B, H, N, D]
WITH_ROWS = ("bias", "mask", "key_lengths", "cu_seqlens_q", "cu_seqlens_k", "positions_q",
             "positions_k", "documents_q", "documents_k", "q_scale", "k_scale", "v_scale")


def plain():
    """Problems of 32 rows beside those of a suite, whose sizes rarely divide into equal shards."""
    shapes = {"plain.full": (2, {}), "plain.causal": (2, {"causal": "top_left"}),
              "plain.grouped": (1, {"causal": "top_left"}),
              "plain.softcap": (2, {"causal": "top_left", "softcap": 0.5})}
    for seed, (name, (groups, terms)) in enumerate(shapes.items()):
        random = numpy.random.default_rng(seed)
        q, dout = (random.standard_normal((1, 2, 32, 16)) for _ in "qd")
        k, v = (random.standard_normal((1, groups, 32, 16)) for _ in "kv")
        yield ringproof.Problem(f"{name}.f64", {"q": q, "k": k, "v": v, "dout": dout} | terms)


def of_suite(suite, implementation):
    """The problems of a suite, and those above. An implementation that needs a `multiple` of some
    number of rows gets what is left of a problem if its last rows are cut off, where that says the
    same: as many queries as keys, and no term that has an axis of rows."""
    for problem in [*ringproof.gen(suite), *plain()]:
        rows = shorter(problem.arguments, implementation.get("multiple", 1))
        if rows:
            cut = {name: problem.arguments[name][:, :, :rows] for name in ROWS
                   if name in problem.arguments}
            problem = ringproof.Problem(problem.name, problem.arguments | cut)
        yield problem


def shorter(given, multiple):
    """The rows that are left if the others are cut off; 0 where nothing can or need be cut."""
    rows = given["q"].shape[2] if given.get("layout", "bhnd") == "bhnd" else 0
    whole = rows % multiple == 0 or rows != given["k"].shape[2]
    return 0 if whole or set(given) & set(WITH_ROWS) else rows - rows % multiple


def visible(given):
    """Which query sees which key, as a mask [B or 1, H or 1, Nq, Nk]."""
    rows, keys = given["q"].shape[2], given["k"].shape[2]
    seen = numpy.ones((1, 1, rows, keys), bool)
    i, j = numpy.arange(rows), numpy.arange(keys)
    documents_q, documents_k = given.get("documents_q"), given.get("documents_k")
    right_end = given.get("causal") == "bottom_right"
    offset = keys - rows if right_end else 0
    if "cu_seqlens_q" in given:
        ends_q, ends_k = given["cu_seqlens_q"], given["cu_seqlens_k"]
        documents_q = numpy.searchsorted(ends_q[1:], i, side="right")
        documents_k = numpy.searchsorted(ends_k[1:], j, side="right")
        lengths = numpy.diff(ends_k) - numpy.diff(ends_q)
        offset = lengths[documents_q][:, None] if right_end else 0
        i, j = i - ends_q[documents_q], j - ends_k[documents_k]
    i, j = given.get("positions_q", i), given.get("positions_k", j)
    ahead = j[None, :] - i[:, None] - offset
    if documents_q is not None:
        seen = seen & (documents_q[:, None] == documents_k[None, :])
    if given.get("causal", "none") != "none":
        seen = seen & (ahead <= 0)
    left, right = given.get("window", (-1, -1))
    seen = seen & ((left < 0) | (ahead >= -left)) & ((right < 0) | (ahead <= right))
    if "key_lengths" in given:
        seen = seen & (numpy.arange(keys) < given["key_lengths"][:, None, None, None])
    return seen & given["mask"] if "mask" in given else seen


def for_judge(problem, dtype, empty_row="any"):
    """The problem in `dtype`, or None where it cannot be said in it.

    `empty_row`: what the implementation promises for a row that sees nothing.
    """
    given = dict(problem.arguments)
    if given.get("layout", "bhnd") != "bhnd" or any(f"{name}_scale" in given for name in "qkv"):
        return None
    if "alibi_slopes" in given:  # no implementation here has an argument for slopes
        return None
    for name in ("q", "k", "v", "bias", "dout"):
        if name in given:
            with numpy.errstate(over="ignore"):
                given[name] = numpy.asarray(given[name], numpy.float64).astype(dtype)
            if not numpy.isfinite(given[name].astype(numpy.float64)).all():
                return None
    if "sinks" in given:  # some functions take them in the inputs' type: values that both hold
        with numpy.errstate(over="ignore"):
            given["sinks"] = given["sinks"].astype(dtype).astype(given["sinks"].dtype)
    if isinstance(given.get("softcap"), str):
        given["softcap"] = float.fromhex(given["softcap"])
    given.pop("dlse", None)
    return given | {"empty_row": empty_row}


def for_kernel(given, takes):
    """The same in the arguments that an implementation `takes`, or None."""
    q, k, v = given["q"], given["k"], given["v"]
    needs = {name for name in ("bias", "softcap", "sinks") if name in given}
    needs |= {"gqa"} if q.shape[1] != k.shape[1] else set()
    needs |= {"value_width"} if v.shape[3] != k.shape[3] else set()
    needs |= {"cross"} if q.shape[2] != k.shape[2] else set()
    needs |= {"scale"} if "scale" in given else set()
    arguments = {name: given[name] for name in ("q", "k", "v", "dout", "bias", "softcap", "sinks")
                 if name in given}
    scale = given.get("scale", 1 / math.sqrt(q.shape[3]))
    arguments["scale"] = float.fromhex(scale) if isinstance(scale, str) else float(scale)
    seen = visible(given)
    if not seen.any(axis=-1).all():
        needs |= {"empty_row"}
    folded = [name for name in FOLDED if name in given and not (
        name == "causal" and given[name] == "none")]
    square = q.shape[2] == k.shape[2]
    if folded == ["causal"] and (given["causal"] in takes or (square and "causal" in takes)):
        arguments["causal"] = True
    elif folded:
        of_keys = "mask" not in takes and (seen == seen[:, :1, :1]).all()
        needs |= {"key_mask" if of_keys else "mask"}
        arguments["mask"] = seen[:, :1, :1] if of_keys else seen
    return arguments if needs <= set(takes) else None
