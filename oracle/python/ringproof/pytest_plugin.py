"""The pytest plugin: a fixture that judges, a mark that says the contract, a failure that explains.

    @pytest.mark.ringproof(contract="bf16-flash", causal="top_left")
    def test_attention(certify):
        certify(q, k, v, out=kernel(q, k, v))

What a test raises as NotCertified, by the fixture or by assert_certified, is shown verdict and
explanation first, and the case is written into the folder of failures, so that the command in the
last line repeats it.
"""

import collections
import pathlib
import re

import pytest

from ._judge import check
from .report import NotCertified

OPTIONS = (
    ("contract", str, "C", "numeric contract of tests that name none"),
    ("rows", int, "K", "judge K sampled query rows of each case"),
    ("seed", int, "S", "seed of the sample"),
    ("power", float, "G", "a gain error of G must be detectable"),
    ("precision", str, "P", "fast, tight, or binary digits of interval arithmetic"),
    ("threads", int, "N", "threads of the judge"),
)
FOLDER = "ringproof-failures"
VERDICTS = pytest.StashKey()


def pytest_addoption(parser):
    group = parser.getgroup("ringproof", "attention kernels judged by ringproof")
    for name, kind, letter, words in OPTIONS:
        group.addoption(f"--ringproof-{name}", type=kind, metavar=letter, help=words)
    group.addoption("--ringproof-failures", metavar="DIR",
                    help=f"folder for the cases of failed tests (default: {FOLDER})")
    parser.addini("ringproof_contract", "numeric contract of tests that name none")
    parser.addini("ringproof_failures", "folder for the cases of failed tests", default=FOLDER)


def pytest_configure(config):
    config.addinivalue_line("markers", "ringproof(contract=..., **arguments): what the certify "
                                       "fixture hands to ringproof.check in this test")
    config.stash[VERDICTS] = collections.Counter()


def _defaults(request):
    """Arguments of check(): from the command line, and nearer ones from the marks."""
    config = request.config
    given = {name: config.getoption(f"ringproof_{name}") for name, *_ in OPTIONS}
    given["contract"] = given["contract"] or config.getini("ringproof_contract") or None
    if isinstance(given["precision"], str) and given["precision"].isdigit():
        given["precision"] = int(given["precision"])
    for mark in reversed(list(request.node.iter_markers("ringproof"))):
        if mark.args:
            raise pytest.UsageError(f"{request.node.nodeid}: the mark ringproof takes named "
                                    "arguments, contract=\"...\" first of all")
        given.update(mark.kwargs)
    return {name: value for name, value in given.items() if value is not None}


@pytest.fixture
def certify(request):
    """certify(q, k, v, out=..., **arguments) judges as ringproof.assert_certified does.

    Arguments that the test's mark ringproof(...) or the command line give need not be repeated.
    Returns the report; a verdict other than PASS fails the test.
    """
    defaults = _defaults(request)

    def judge(q, k=None, v=None, **arguments):
        given = {"name": request.node.nodeid, **defaults, **arguments}
        report = check(q, k, v, **given)
        request.config.stash[VERDICTS][report.verdict] += 1
        if not report.passed:
            raise NotCertified(report)
        return report

    return judge


def case_path(config, nodeid):
    """A new file in the folder of failures, named after the test."""
    folder = config.getoption("ringproof_failures") or config.getini("ringproof_failures")
    name = re.sub(r"[^\w.-]+", "-", nodeid.rsplit("/", 1)[-1]).strip("-")
    return pathlib.Path(folder) / f"{name}.safetensors"


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    if call.excinfo is None or not isinstance(call.excinfo.value, NotCertified):
        return
    error, shown = call.excinfo.value, outcome.get_result()
    if error.report.file is None:
        path = case_path(item.config, item.nodeid)
        path.parent.mkdir(parents=True, exist_ok=True)
        error.save(path)
    own = call.excinfo.traceback.filter(lambda entry: entry.frame.f_globals.get("__package__")
                                        not in ("ringproof", "_pytest", "pluggy"))
    words = call.excinfo.getrepr(style="value")
    if own:
        place = own[-1]
        words.addsection(f"{place.path}:{place.lineno + 1}", str(place.statement).strip())
    shown.longrepr = words


def pytest_terminal_summary(terminalreporter, config):
    verdicts = config.stash[VERDICTS]
    if verdicts:
        counts = ", ".join(f"{count} {word}" for word, count in verdicts.most_common())
        terminalreporter.write_line(f"ringproof: {sum(verdicts.values())} judged: {counts}")
