"""What the lists of mutants have in common: where an edit must fit, and how records are kept."""

import json
import pathlib

ROOT = pathlib.Path(__file__).parent.parent.parent


def mismatches(mutants, key, known, what):
    """What is wrong with a list, as sentences: an edit that does not match once, or a killer under
    `key` that is not among those known."""
    for mutant in mutants:
        times = (ROOT / mutant["file"]).read_text(encoding="utf-8").count(mutant["from"])
        if times != 1:
            yield f"{mutant['name']}: matches {times} times in {mutant['file']}, must match once"
        if "equivalent" not in mutant and mutant.get(key) not in known:
            yield f"{mutant['name']}: no {what} is called '{mutant.get(key)}'"


def keep(path, records):
    """Writes name -> record as JSON, a line each, in the order of names."""
    lines = [f"  {json.dumps(name)}: {json.dumps(record)}" for name, record in sorted(records)]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
