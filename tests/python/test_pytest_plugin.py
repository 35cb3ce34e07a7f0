"""The pytest plugin, on test files of its own."""

KERNELS = """
import numpy, pytest, ringproof

random = numpy.random.default_rng(1)
q, k, v = (random.standard_normal((1, 2, 9, 8)).astype(numpy.float32) for _ in range(3))

def attention(causal):
    scores = numpy.float32(8 ** -0.5) * (q @ k.swapaxes(2, 3))
    if causal:
        scores[..., ~numpy.tri(9, dtype=bool)] = -numpy.inf
    weights = numpy.exp(scores - scores.max(axis=3, keepdims=True))
    return (weights @ v) / weights.sum(axis=3, keepdims=True)
"""

RIGHT = KERNELS + """
@pytest.mark.ringproof(contract="fp32", causal="top_left")
def test_attention(certify):
    assert certify(q, k, v, out=attention(True)).contract == "fp32"
"""

BROKEN = KERNELS + """
@pytest.mark.ringproof(contract="fp32", causal="top_left")
class TestKernel:
    @pytest.mark.parametrize("size", [9])
    def test_attention(self, certify, size):
        certify(q, k, v, out=attention(False))
"""


def test_a_certified_kernel_passes_and_is_counted(pytester):
    pytester.makepyfile(RIGHT)
    result = pytester.runpytest()
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["ringproof: 1 judged: 1 PASS"])


def test_a_broken_kernel_prints_its_fault_in_the_first_ten_lines_of_the_failure(pytester):
    pytester.makepyfile(BROKEN)
    result = pytester.runpytest()
    result.assert_outcomes(failed=1)
    lines = result.stdout.lines
    start = next(n for n, line in enumerate(lines) if "TestKernel.test_attention" in line
                 and line.startswith("___"))
    failure = lines[start + 1:start + 11]
    assert "FAIL" in failure[0]
    assert any("explained by MASK-DROP" in line for line in failure)
    result.stdout.fnmatch_lines(["*worst*accepted*error over bound*", "*power*refuses*",
                                 "*repeat*ringproof explain ringproof-failures/*",
                                 "*certify(q, k, v, out=attention(False))*"])
    files = list((pytester.path / "ringproof-failures").iterdir())
    assert len(files) == 1 and files[0].suffix == ".safetensors"


def test_the_case_of_a_failure_repeats_it(pytester):
    import ringproof
    pytester.makepyfile(BROKEN)
    pytester.runpytest("--ringproof-failures", "cases")
    file = next((pytester.path / "cases").iterdir())
    assert ringproof.check(file).verdict == "FAIL"


def test_assert_certified_is_shown_alike_without_the_fixture(pytester):
    pytester.makepyfile(KERNELS + """
def test_attention():
    ringproof.assert_certified(q, k, v, out=attention(False), causal=True, contract="fp32")
""")
    result = pytester.runpytest()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*FAIL*", "*explained by MASK-DROP*", "*ringproof explain*"])


def test_the_contract_comes_from_the_nearest_that_names_one(pytester):
    pytester.makeini("[pytest]\nringproof_contract = fp64\n")
    pytester.makepyfile(KERNELS + """
def test_ini(certify):
    assert certify(q, k, v, out=attention(False)).contract == "fp64"

@pytest.mark.ringproof(contract="fp32")
def test_mark(certify):
    assert certify(q, k, v, out=attention(False)).contract == "fp32"

@pytest.mark.ringproof(contract="fp64")
def test_argument(certify):
    assert certify(q, k, v, out=attention(False), contract="fp32").contract == "fp32"
""")
    result = pytester.runpytest()
    result.assert_outcomes(passed=2, failed=1)  # float32 arithmetic is not that of fp64
    result = pytester.runpytest("--ringproof-contract", "fp32", "-k", "test_ini")
    result.stdout.fnmatch_lines(["*assert 'fp32' == 'fp64'*"])


def test_an_unnamed_contract_and_a_bare_mark_are_errors(pytester):
    pytester.makepyfile(KERNELS + """
def test_none(certify):
    certify(q, k, v, out=attention(False))

@pytest.mark.ringproof("fp32")
def test_bare(certify):
    certify(q, k, v, out=attention(False))
""")
    result = pytester.runpytest()
    result.assert_outcomes(failed=1, errors=1)
    result.stdout.fnmatch_lines(["*no contract is given*"])
