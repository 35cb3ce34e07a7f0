"""Who may include whom: the include direction of docs/architecture.md as a table.

The judge never includes what it judges, the reference needs nothing but the standard library, and
inside the judge the rooms are in one order. That order makes the verdict independent evidence.
"""

import re

INCLUDE = re.compile(r'\s*#\s*include\s*(?:<([^>]+)>|"([^"]+)")')

# Headers by library; what matches nothing here must be a file of this project or a standard header.
LIBRARIES = [
    ("posix", r"(?:sys/.*|unistd|fcntl|pthread|poll|signal|spawn|dlfcn)(?:\.h)?"),
    ("processor", r"(?:[a-z]?mmintrin|cpuid)\.h"),
    ("multiprecision", r"boost/.*|mpfi(?:_io)?\.h|mpfr\.h|gmp\.h"),
    ("highway", r"hwy/.*"),
    ("json", r"nlohmann/.*"),
    ("cli11", r"CLI/.*"),
    ("nanobind", r"nanobind/.*"),
    ("fmt", r"fmt/.*"),
    ("mpi", r"(?:smpi/s)?mpi\.h"),
    ("cuda", r"cuda.*|nccl\.h|mma\.h|cooperative_groups.*"),
    ("catch2", r"catch2/.*"),
    ("rapidcheck", r"rapidcheck(?:\.h|/.*)"),
]
STANDARD = re.compile(r"[a-z_]+|(?:assert|errno|fenv|float|inttypes|limits|math|stdbool|stddef"
                      r"|stdint|stdio|stdlib|string)\.h")
JUDGE = {"std", "posix", "processor", "multiprecision", "highway", "json"}
ROOMS = ["case", "truth", "contract", "judge"]


def rooms_up_to(room):
    return {f"oracle/{r}/" for r in ROOMS[:ROOMS.index(room) + 1]}


TOOLS = {"cli11", "fmt", "json"}  # what a command line may use beside its tier

# The longest matching prefix decides. Entries with "/" are folders of this project.
ALLOWED = {
    "reference/": {"std", "reference/"},
    "reference/main.cpp": TOOLS | {"std", "reference/", "oracle/case/"},
    "reference/cli/": TOOLS | {"std", "reference/", "oracle/case/"},
    "mpi/": {"std", "mpi/", "reference/", "mpi", "highway"},
    "mpi/cli/": TOOLS | {"std", "posix", "mpi/", "reference/", "mpi", "oracle/case/"},
    "mpi/main.cpp": TOOLS | {"std", "mpi/", "reference/", "mpi", "oracle/case/"},
    "mpi/check_main.cpp": TOOLS | {"std", "mpi/", "oracle/", "mpi"},
    "cuda/": {"std", "cuda/", "reference/", "cuda"},
    "cuda/host/": {"std", "cuda/", "reference/", "cuda", "multiprecision", "posix"},
    "cuda/main.cpp": TOOLS | {"std", "cuda", "reference/", "oracle/case/"},
    "oracle/": JUDGE | {"oracle/"},
    **{f"oracle/{room}/": JUDGE | rooms_up_to(room) for room in ROOMS},
    "oracle/python/": JUDGE | {"oracle/", "nanobind"},
    "oracle/cli/": JUDGE | {"oracle/", "cli11", "fmt"},
    "oracle/report/": JUDGE | {"oracle/", "cli11", "fmt"},
    "tests/": None,      # everything
    "tutorials/": None,
}


def kind(header, paths):
    """Library name, "std", the folder of a project file, or None for an unknown header."""
    for library, pattern in LIBRARIES:
        if re.fullmatch(pattern, header):
            return library
    if header in paths:
        return header
    return "std" if STANDARD.fullmatch(header) else None


def check(path, lines, paths):
    """Yields (line, rule, message) for each include of `path` against the table."""
    prefixes = [p for p in ALLOWED if path.startswith(p)]
    if not prefixes:
        return
    prefix = max(prefixes, key=len)
    allowed = ALLOWED[prefix]
    for number, line in enumerate(lines, 1):
        found = INCLUDE.match(line)
        if not found:
            continue
        header = found.group(1) or found.group(2)
        what = kind(header, paths)
        if what is None:
            yield number, "include", f"{header}: no file of the project and no known library"
        elif allowed is not None and not any(
                what == a or ("/" in a and what.startswith(a)) for a in allowed):
            yield number, "include", f"{prefix} may not include {header}"
