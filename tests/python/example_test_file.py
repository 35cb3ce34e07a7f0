"""A test file as docs/python.md shows it. Its name is not test_*.py: the kernel is broken."""

# [pytest]
import pytest
from example import k, kernel, q, v


@pytest.mark.ringproof(contract="bf16-flash", causal="top_left")
def test_attention(certify):
    certify(q, k, v, out=kernel(q, k, v, causal=False))
# [/pytest]
