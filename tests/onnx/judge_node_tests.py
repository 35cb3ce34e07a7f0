"""Judges node tests of the ONNX operator Attention and writes the table of docs/onnx.md.

    python3 tests/onnx/judge_node_tests.py RINGPROOF FOLDER [--write PAGE]

FOLDER holds what node_tests.py wrote, or extracted tensors. Each test becomes a case, its Y is
judged under the contract of its type, and a line of the table says what was found. With --write
the table replaces everything behind the line MARK of the page.
"""

import collections
import json
import pathlib
import subprocess
import sys
import tempfile

MARK = "<!-- written by tests/onnx/judge_node_tests.py --write -->"
CONTRACTS = {"F32": "fp32", "F16": "fp16-eager", "BF16": "bf16-unfused"}


def run(*words):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True,
                          check=False)


def judge(program, test, folder):
    """What was found about one test: verdict, error over bound, contract; or the refusal."""
    case, report = folder / "case.safetensors", folder / "report.json"
    made = run(program, "onnx-case", test, "-o", case)
    if made.returncode == 2:
        return {"verdict": "BAD INPUT", "note": made.stderr.strip()}
    header = case.read_bytes()
    header = json.loads(header[8:8 + int.from_bytes(header[:8], "little")])
    contract = CONTRACTS[header["q"]["dtype"]]
    run(program, "check", case, "--contract", contract, "--report", f"json={report}")
    found = json.loads(report.read_text(encoding="utf-8"))["cases"][0]
    notes = [line.strip() for line in made.stdout.splitlines()[1:]]
    if "error" in found:
        return {"verdict": found["verdict"], "note": found["error"], "contract": contract}
    answer = found["answers"][0]
    if reason := answer.get("reason", answer.get("why_not_applicable")):
        notes.append(reason)
    notes += [one["id"] for one in found.get("explanation", {}).get("classes", [])][:2]
    return {"verdict": found["verdict"], "type": header["q"]["dtype"], "contract": contract,
            "ratio": answer.get("worst", {}).get("error_over_bound"), "rows": answer["rows"],
            "opset": json.loads(header["__metadata__"]["ringproof"])["about"]["opset"],
            "note": "; ".join(dict.fromkeys(notes))}


def table(program, tests):
    """Lines of Markdown: a row for each test, and how many verdicts of each kind there are."""
    counts = collections.Counter()
    lines = ["| node test | opset | contract | verdict | error over bound | notes |",
             "|---|---|---|---|---|---|"]
    with tempfile.TemporaryDirectory() as folder:
        for test in tests:
            found = judge(program, test, pathlib.Path(folder))
            counts[found["verdict"]] += 1
            ratio = found.get("ratio")
            ratio = f"{ratio:.2g}" if isinstance(ratio, float) else ratio or "0"
            lines.append(f"| `{test.stem.removeprefix('test_')}` | {found.get('opset', '')} "
                         f"| `{found.get('contract', '')}` | {found['verdict']} | {ratio} "
                         f"| {found['note']} |")
    total = ", ".join(f"{count} {verdict}" for verdict, count in counts.most_common())
    return [f"{len(tests)} node tests: {total}.", "", *lines]


def main(program, folder, *write):
    found = table(program, sorted(path for path in pathlib.Path(folder).iterdir()
                                  if path.is_dir() or path.suffix == ".safetensors"))
    if not write:
        print("\n".join(found))
        return
    page = pathlib.Path(write[1])
    text = page.read_text(encoding="utf-8")
    kept = text[:text.index(MARK) + len(MARK)]
    page.write_text(kept + "\n\n" + "\n".join(found) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
