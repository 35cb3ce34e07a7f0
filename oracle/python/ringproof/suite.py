"""The property suite on a Python callable.

The suite is the program `ringproof-suite`, which judges any command that turns a case file into an
answered one. Here the command is a line of shell that passes the names of the two files through
a pair of pipes to this process, so that a call costs milliseconds and the callable lives where it
was made.
"""

import os
import pathlib
import re
import select
import shutil
import subprocess
import tempfile
import threading
import time

from ._problem import ANSWERS, contract_text, read, write

PROGRAM = "ringproof-suite"
NOT_SUPPORTED = 77
WORDS = {0: "PASS", 1: "FAIL", 3: "UNDECIDED", NOT_SUPPORTED: "SKIPPED"}


class SuiteResult:
    """`verdict` is the worst of all laws; `str` is what `ringproof suite` prints."""

    def __init__(self, verdict: str, text: str) -> None:
        self.verdict, self.text = verdict, text

    @property
    def passed(self) -> bool:
        return self.verdict == "PASS"

    def __str__(self) -> str:
        return self.text

    def __repr__(self):
        return f"<ringproof.SuiteResult {self.verdict}>"

    def __bool__(self):
        raise TypeError("a verdict is a word, not a truth value: compare result.verdict")


def find_program():
    """The path of ringproof-suite: RINGPROOF_SUITE, else on the search path. None if not there."""
    return shutil.which(os.environ.get("RINGPROOF_SUITE") or PROGRAM)


def suite(kernel, contract, *, only=None, require=None, seed=1, count=3, promise="deterministic",
          timeout=30.0, shrink=10.0, failures="ringproof-failures", program=None):
    """Runs the laws of attention on a kernel.

    def kernel(problem):
        if "mask" in problem.arguments:
            raise NotImplementedError
        return {"out": ..., "lse": ...}

    print(suite(kernel, "fp32"))

    `kernel` takes a `Problem` (arrays as `check` takes them) and returns {"out": [B, H, Nq, Dv],
    "lse": [B, H, Nq], "dq": ...} with what it has, or out alone; NotImplementedError says that it
    does not support the problem. `contract`: a name or an object. `require`: features without which
    the kernel fails; a call may take `timeout` seconds; what breaks a law is shrunk for at most
    `shrink` seconds and written into the folder `failures`.
    Returns a SuiteResult. Raises ValueError for bad input, RuntimeError where the program
    ringproof-suite is not found.
    """
    program = program or find_program()
    if program is None:
        raise RuntimeError(f"{PROGRAM} is not on the search path (RINGPROOF_SUITE may name it); "
                           "./run suite builds it")
    with tempfile.TemporaryDirectory(prefix="ringproof-") as folder:
        pipes = _Pipes(pathlib.Path(folder), kernel)
        words = [program, "--command", pipes.command, "--contract", contract_text(contract),
                 "--seed", str(seed), "--count", str(count), "--promise", promise,
                 "--timeout", str(timeout), "--shrink", str(shrink), "--failures", str(failures)]
        for option, names in (("--only", only), ("--require", require)):
            if names:
                words += [option, names if isinstance(names, str) else ",".join(names)]
        with pipes:
            ended = subprocess.run(words, capture_output=True, text=True, check=False)
    if ended.returncode not in WORDS:
        message = ended.stderr.strip() or f"{PROGRAM} ended with {ended.returncode}"
        raise ValueError(message) if ended.returncode == 2 else RuntimeError(message)
    return SuiteResult(WORDS[ended.returncode], _in_python(ended.stdout.rstrip("\n"), contract))


def _in_python(text, contract):
    """The commands that repeat a failure as calls of this module: the pipes are gone by then."""
    return re.sub(r"repeat: .* --only (\S+) --seed (\d+) --count (\d+)",
                  lambda found: f"repeat: ringproof.suite(kernel, {contract!r}, "
                                f"only={found[1]!r}, seed={found[2]}, count={found[3]})", text)


class _Pipes:
    """Serves calls of the kernel that arrive as lines in one named pipe, statuses in another."""

    def __init__(self, folder, kernel):
        self.kernel = kernel
        self.ask, self.tell = folder / "ask", folder / "tell"
        for pipe in (self.ask, self.tell):
            os.mkfifo(pipe)
        # The last line a command prints is what the suite reports of a failed call.
        self.command = (f"printf '%s\\n' {{in}} {{out}} $$ > '{self.ask}'; "
                        f"read -r status words < '{self.tell}'; "
                        'echo "$words"; exit "$status"')
        self.thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        with open(self.ask, "w", encoding="utf-8") as pipe:
            pipe.write("\n")  # an empty name ends the service
        self.thread.join()

    def _serve(self):
        while True:
            with open(self.ask, encoding="utf-8") as pipe:
                names = pipe.read().splitlines()
            if len(names) != 3:
                return
            status, words = answered(self.kernel, *names[:2])
            self._tell(f"{status} {words}\n", int(names[2]))

    def _tell(self, line, shell):
        """Hands the line to the shell that asked; drops it if the suite gave that call up."""
        while True:
            try:
                pipe = os.open(self.tell, os.O_WRONLY | os.O_NONBLOCK)
            except OSError:  # the shell does not read yet
                if not _alive(shell):
                    return
                time.sleep(0.0005)
                continue
            try:
                os.write(pipe, line.encode()[:select.PIPE_BUF])
            except BrokenPipeError:
                pass
            finally:
                os.close(pipe)
            return


def _alive(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def answered(kernel, given, asked):
    """Answers one case file; returns (exit status, words for people)."""
    try:
        problem = read(given)
        found = kernel(problem)
        if not isinstance(found, dict):
            found = {"out": found}
        answers = {name: array for name, array in found.items() if array is not None}
        unknown = set(answers) - set(ANSWERS)
        if unknown:
            raise ValueError(f"the kernel returned {', '.join(sorted(unknown))}: no answers")
        write(asked, **problem.arguments, **answers)
    except NotImplementedError as error:
        return NOT_SUPPORTED, str(error)
    except Exception as error:  # the suite reports it as a broken law
        words = f"{type(error).__name__}: {error}"
        return 1, words.replace("\n", " ")
    return 0, ""
