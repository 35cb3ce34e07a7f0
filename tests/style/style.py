#!/usr/bin/env python3
"""The house style, executed: docs/CONTRIBUTING.md says why each rule is there.

    style.py [ROOT [PATH...]]   exit 1 and one line "PATH:LINE: rule: what" for each violation in
                                all files, or in those that are named

A violation that must stay is listed with its reason in excuses.json; an excuse that nobody needs is
an error too.
"""

import json
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import cpp_text  # noqa: E402
import includes  # noqa: E402
import sources  # noqa: E402

CPP = {".hpp", ".cpp", ".h", ".c", ".cu", ".cuh"}
CODE = CPP | {".py", ".sh", ".cmake"}
MAX_LINES, MAX_COLUMNS, MAX_FUNCTION = 400, 100, 70
TOP = ("reference", "mpi", "cuda", "oracle", "tests", "docs", "tutorials")

MARKER = re.compile(r"\b(TODO|FIXME|XXX|HACK|WIP)\b")
# Words that speak of one machine or of how a text came about, not of the project.
WORDS = re.compile(
    r"\b(?i:agents?|LLMs?|chatbots?|helpers?|sessions?|sandbox|prompts?|co-authored)\b|\bAI\b"
    r"|/work/|/tmp/|/home/\w"
    r"|\b(?:debian|ubuntu|pypi|pythonhosted|npmjs|crates|docker)\.(?:org|com|io|net)\b")
WORDS_NAMED_IN = [f"tests/style/{name}" for name in ("style.py", "test_style.py", "excuses.json")]

SMALL = r"(?:\d+(?:\.\d*)?|\.\d+)[eE]-\d+|(?<![\d.])0?\.0\d*[1-9]"  # 1e-6, 2.5E-3, 0.01
TOLERANCE = re.compile(
    rf"\s(?:<|<=|>|>=)\s[^;?,]*?(?:{SMALL})|(?:{SMALL})[^;?,]*?\s(?:<|<=|>|>=)\s"
    r"|\bApprox\s*\(|\bWithin(?:Abs|Rel|ULP)\b|\.(?:epsilon|margin)\s*\(")
FUNCTION = re.compile(
    r"( *)(?!(?:namespace|struct|class|enum|union|extern|if|for|while|switch|else|do|try)\b)"
    r"[\w~:&*<>\[\]].*[)\w>&]\s*(?:->.*)?\{\s*$")


def is_code(path):
    name = pathlib.PurePath(path)
    return name.suffix in CODE or name.name in ("run", "CMakeLists.txt")


def check_size(path, lines):
    """Files of at most 400 lines, lines of at most 100 columns."""
    if len(lines) > MAX_LINES:
        yield len(lines), "length", f"{len(lines)} lines, at most {MAX_LINES}"
    for number, line in enumerate(lines, 1):
        if len(line) > MAX_COLUMNS:
            yield number, "columns", f"{len(line)} columns, at most {MAX_COLUMNS}"
        if line != line.rstrip():
            yield number, "space", "space at the end of the line"


def check_words(path, lines):
    """No marker of unfinished work, no word that speaks of anything but the project."""
    if path in WORDS_NAMED_IN:
        return
    for number, line in enumerate(lines, 1):
        if found := MARKER.search(line):
            yield number, "marker", f"'{found.group()}' marks unfinished work"
        if found := WORDS.search(line):
            yield number, "word", f"'{found.group()}' does not speak of the project"


def check_first_comment(path, lines):
    """A source file opens by saying what it is, or by including the header of its name."""
    suffix, stem = pathlib.PurePath(path).suffix, str(pathlib.PurePath(path).with_suffix(""))
    first = next((line for line in lines if line.strip() and not line.startswith("#!")), "")
    opens = {".py": ('"""', "#"), ".sh": ("#",), ".cmake": ("#",)}
    own_header = f'#include "{stem}.hpp"'
    if suffix in CODE and not first.startswith(opens.get(suffix, ("//", "/*", own_header))):
        yield 1, "first-comment", "the file does not open with a comment that says what it is"
    many_times = path.endswith("-inl.hpp")  # Highway includes these once for each target
    if suffix == ".hpp" and not many_times and "#pragma once" not in map(str.strip, lines):
        yield 1, "pragma", "header without #pragma once"


def check_functions(path, code):
    """Functions of at most 70 lines: from a line that opens a body to the brace in its column."""
    opened = None
    for number, line in enumerate(code, 1):
        if opened is None:
            body = FUNCTION.match(line)
            if body and "(" in line + code[number - 2]:
                opened = number, body.group(1)
                if line.lstrip().startswith(": "):  # initialisers stand four columns further in
                    opened = number, opened[1][4:]
        elif re.match(rf"{opened[1]}\}}", line):
            if number - opened[0] + 1 > MAX_FUNCTION:
                length = number - opened[0] + 1
                yield opened[0], "function", f"{length} lines, at most {MAX_FUNCTION}"
            opened = None


def check_tolerance(path, code):
    """Tolerances are derived in oracle/contract/ and nowhere chosen."""
    if path.startswith("oracle/contract/") or not path.startswith(("oracle/", "tests/")):
        return
    for number, line in enumerate(code, 1):
        if not line.lstrip().startswith("#") and (found := TOLERANCE.search(line)):
            yield number, "tolerance", f"a chosen tolerance: {found.group().strip()}"


def check_folders(paths):
    """Every folder of the layout has a README.md, which is its reading order."""
    folders = {str(parent) for p in paths for parent in pathlib.PurePath(p).parents}
    for folder in sorted(folders - {"."}):
        if folder.split("/")[0] in TOP and f"{folder}/README.md" not in paths:
            yield folder, 0, "readme", "folder without README.md"


def violations(root, chosen=()):
    """All violations as (path, line, rule, message)."""
    paths = sources.files(root)
    if not chosen:
        yield from check_folders(set(paths))
    for path in chosen or paths:
        try:
            text = (root / path).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue  # data
        lines = text.splitlines()
        found = list(check_words(path, lines))
        if is_code(path):
            found += list(check_size(path, lines)) + list(check_first_comment(path, lines))
        if pathlib.PurePath(path).suffix in CPP:
            code, _ = cpp_text.split(text)
            found += list(check_functions(path, code)) + list(check_tolerance(path, code))
            found += list(includes.check(path, lines, set(paths)))
        for line, rule, message in found:
            yield path, line, rule, message


def excused(found, excuses, root):
    """Drops excused violations; an excuse that excuses nothing is a violation itself."""
    used = set()
    for path, line, rule, message in found:
        text = ""
        if line and (root / path).is_file():
            text = (root / path).read_text(encoding="utf-8").splitlines()[line - 1]
        for i, excuse in enumerate(excuses):
            if (pathlib.PurePath(path).match(excuse["path"]) and excuse["rule"] == rule
                    and excuse.get("contains", "") in text):
                used.add(i)
                break
        else:
            yield path, line, rule, message
    for i, excuse in enumerate(excuses):
        if i not in used:
            yield excuse["path"], 0, "excuse", f"nothing needs the excuse '{excuse['reason']}'"


def main(root, chosen):
    excuses = json.loads((root / "tests/style/excuses.json").read_text(encoding="utf-8"))
    rest = list(excused(violations(root, chosen), excuses, root))
    if chosen:  # most excuses are for other files
        rest = [violation for violation in rest if violation[2] != "excuse"]
    for path, line, rule, message in rest:
        print(f"{path}:{line}: {rule}: {message}")
    count = len(chosen or sources.files(root))
    print(f"style: {count} files, {len(rest)} violations, {len(excuses)} excuses")
    return 1 if rest else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve(), sys.argv[2:]))
