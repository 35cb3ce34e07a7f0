#!/usr/bin/env python3
"""The development container holds every package that ./run would install for its two commands, and
for a newcomer who goes on to the suite.

    test_container.py [ROOT]    exit 1 and one line for each package that is missing
"""

import pathlib
import re
import sys

# The line of `./run test` that names the lists; `./run demo` needs a part of them.
NEEDED = re.compile(r"^  test\)\n    need (.*)$", re.M)


def missing(run, dockerfile):
    """Packages of ./run's lists that the Dockerfile does not name."""
    wanted = []
    needed = NEEDED.search(run)
    if not needed:
        raise SystemExit("container: `./run test` needs no lists of packages?")
    for name in re.findall(r"\$(\w+)_packages", needed[1]):
        found = re.search(rf'^{name}_packages="([^"]*)"', run, re.M)
        if not found:
            raise SystemExit(f"container: ./run has no list {name}_packages")
        wanted += found[1].split()
    installed = set(re.findall(r"[a-z0-9+.-]+", dockerfile))
    return [package for package in wanted if package not in installed]


def main(root):
    run = (root / "run").read_text(encoding="utf-8")
    dockerfile = (root / ".devcontainer/Dockerfile").read_text(encoding="utf-8")
    assert missing(run, dockerfile.replace("libmpfi-dev", "")) == ["libmpfi-dev"]
    gone = missing(run, dockerfile)
    for package in gone:
        print(f"container: .devcontainer/Dockerfile does not install {package}")
    return 1 if gone else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()))
