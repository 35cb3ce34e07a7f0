"""Where the judge decides something: the places at which a mutant must stand.

    places.py    prints those that have none yet, excused ones among them

A source of the judge decides if it has a branch or a loop. A function decides a formula if a
comment of it names one, as "(12)", "Lemma 12" or "Theorem 13" of the pages in docs/. A type of a
header counts by its sources.
"""

import pathlib
import re

ROOT = pathlib.Path(__file__).parent.parent.parent
ROOMS = ("truth", "case", "contract", "judge", "diagnose", "generate", "audit")
DECIDES = re.compile(r"\b(?:if|for|while|switch) \(")
CITES = re.compile(r"//.*(?:\(\d{1,2}[a-z]?\)|\b(?:Lemmas?|Theorem) \d)")
BODY = re.compile(r"\)(?: const)?(?: noexcept)? \{")
NAME = re.compile(r"([~\w:]+)\(|\b(?:struct|class) (\w+)")


def sources():
    """Path -> text of every source of the judge."""
    return {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for room in ROOMS
            for path in sorted((ROOT / "oracle" / room).glob("*.[ch]pp"))}


def decides(text):
    return DECIDES.search(re.sub(r"//.*", "", text)) is not None


def blocks(text):
    """(begin, end) of what stands at the left edge, with the comments before it: functions, types
    and constants."""
    begin = comment = None
    at = 0
    lines = text.splitlines(keepends=True)
    for line, after in zip(lines, lines[1:] + [""]):
        end = at + len(line)
        if begin is None and line.startswith("//"):
            comment = at if comment is None else comment
        elif begin is None and line[0].isalpha():
            begin = at if comment is None else comment
        elif begin is None:
            comment = None
        closes = line[0] == "}" or line.rstrip()[-1:] in ("}", ";") and after[:1] not in (" ", "}")
        if begin is not None and closes and not (line[0] != "}" and open_at_end(text[begin:end])):
            yield begin, end
            begin = comment = None
        at = end


def open_at_end(code):
    return code.count("{") > code.count("}")


def cited(path, text):
    """Name -> (begin, end) of the functions that cite a formula or lemma."""
    found = {}
    for begin, end in blocks(text):
        code = re.sub(r"//.*", "", text[begin:end])
        if not CITES.search(text[begin:end]) or not BODY.search(code):
            continue
        word = NAME.search(re.sub(r"template <.*?>\n", "", code))
        if path.endswith(".hpp") and re.search(r"^(?:struct|class) ", code, re.MULTILINE):
            continue
        name = word.group(1) or word.group(2)
        while name in found:
            name += "'"
        found[name] = begin, end
    return found


def files_and_functions(mutants):
    """What there is and what has a mutant: four sets of names, files twice and functions twice."""
    every = sources()
    edited = {mutant["file"] for mutant in mutants}
    functions, met = set(), set()
    for path, text in every.items():
        edits = [(text.find(m["from"]), len(m["from"])) for m in mutants if m["file"] == path]
        for name, (begin, end) in cited(path, text).items():
            functions.add(f"{path}: {name}")
            if any(at < end and at + size > begin for at, size in edits):
                met.add(f"{path}: {name}")
    deciding = {path for path, text in every.items() if decides(text)}
    return deciding, edited & deciding, functions, met


if __name__ == "__main__":
    import by_suite
    import by_test
    files, edited, functions, met = files_and_functions(by_suite.load() + by_test.load())
    for name in sorted(files - edited) + sorted(functions - met):
        print(name)
    print(f"{len(edited)} of {len(files)} sources, {len(met)} of {len(functions)} functions")
