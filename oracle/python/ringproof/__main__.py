"""python -m ringproof check|explain|fit CASE... [--contract C]: case files, where the program
`ringproof` is not installed. Exit status as the program's: 0 PASS, 1 FAIL, 2 bad input,
3 UNDECIDED, 4 SUSPECT; of several cases the worst.
"""

import argparse
import sys

from . import __version__, check, explain, fit

STATUS = {"PASS": 0, "FAIL": 1, "UNDECIDED": 3, "SUSPECT": 4}
WORST_FIRST = (2, 1, 4, 3, 0)
VERBS = {"check": check, "explain": explain, "fit": fit}


def main(words=None):
    parser = argparse.ArgumentParser(prog="python -m ringproof",
                                     description="Judges attention outputs in case files.")
    parser.add_argument("--version", action="version", version=f"ringproof {__version__}")
    parser.add_argument("verb", choices=VERBS)
    parser.add_argument("cases", nargs="+", metavar="CASE", help="safetensors file with an answer")
    parser.add_argument("--contract", help="numeric contract, in place of the file's")
    given = parser.parse_args(words)
    statuses = []
    for case in given.cases:
        try:
            found = VERBS[given.verb](case, contract=given.contract)
            print(found)
            statuses.append(STATUS[found.verdict])
        except ValueError as error:
            print(f"ringproof: {error}", file=sys.stderr)
            statuses.append(2)
    return min(statuses, key=WORST_FIRST.index)


if __name__ == "__main__":
    sys.exit(main())
