"""The examples of docs/python.md. What they print is compared with example.txt and failure.txt."""

import ml_dtypes
import numpy

random = numpy.random.default_rng(7)
q, k, v = (random.standard_normal((1, 2, 64, 32)).astype(ml_dtypes.bfloat16) for _ in range(3))


def kernel(queries, keys, values, causal):  # [B, H, N, D] each
    queries, keys, values = (array.astype(numpy.float64) for array in (queries, keys, values))
    scores = queries @ keys.swapaxes(2, 3) / numpy.sqrt(queries.shape[3])
    if causal:
        scores[..., ~numpy.tri(scores.shape[2], dtype=bool)] = -numpy.inf
    weights = numpy.exp(scores - scores.max(axis=3, keepdims=True))
    weights /= weights.sum(axis=3, keepdims=True)
    return (weights @ values).astype(ml_dtypes.bfloat16)


def judged():
    out = kernel(q, k, v, causal=True)
    # [three-lines]
    import ringproof
    report = ringproof.check(q, k, v, out=out, contract="bf16-flash", causal="top_left")
    print(report)
    # [/three-lines]
    return report


def explained():
    import ringproof
    out = kernel(q, k, v, causal=False)  # forgets the mask
    try:
        # [assert]
        ringproof.assert_certified(q, k, v, out=out, contract="bf16-flash", causal="top_left")
        # [/assert]
    except ringproof.NotCertified as error:
        print(*str(error).splitlines()[:2], sep="\n")


if __name__ == "__main__":
    judged()
