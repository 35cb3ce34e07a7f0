#!/usr/bin/env python3
"""Whose turn it is: a part of all mutants, or tests, for a CI that has not the time for all.

    turn.py N NAME...   prints those of one part of N; each commit has the next part
"""

import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).parent.parent.parent


def turn():
    """A number that grows by one with each commit, so that a rerun judges the same mutants. What a
    clone without history cannot count, it takes from the commit's name."""
    def git(*words):
        return subprocess.run(["git", "-C", ROOT, *words], capture_output=True,
                              text=True).stdout.strip()
    if git("rev-parse", "--is-shallow-repository") == "false":
        return int(git("rev-list", "--count", "HEAD") or "0")
    return int(git("rev-parse", "HEAD") or "0", 16)


def share(all_of_them, parts, now):
    """Every `parts`-th, so that each list gives some, and after `parts` turns each had its own.
    Where the time does not suffice the last are left out: so the next round begins with others."""
    some = all_of_them[now % parts::parts]
    first = now // parts * (len(some) // 3 + 1) % max(1, len(some))
    return some[first:] + some[:first]


class Clock:
    """The time that is left, and how many mutants it was too short for."""

    def __init__(self, seconds):
        self.end = None if seconds is None else time.monotonic() + seconds
        self.not_begun = 0

    def over(self):
        return self.end is not None and time.monotonic() >= self.end


if __name__ == "__main__":
    print(*share(sys.argv[2:], int(sys.argv[1]), turn()))
