#!/usr/bin/env python3
"""Judges public attention functions:

    findings.py [-o JSON] [--cases FOLDER] [--suite S] [--type T]... [--missing] [NAME...]

Runs every implementation of implementations.json, or those whose name or package contains a NAME,
on the problems of a suite in every type for which it declares a contract, or in the types T alone,
and judges its answers under that contract. The suite is `full`, unless an implementation names a
smaller one, or S. What is refused is explained, the contracts that would accept it are looked up,
and the smallest case of each kind is written into FOLDER. The record goes to JSON, of which a run
with a NAME or a T replaces what it judged; --missing judges what the record lacks (of this version,
suite and contract), so that a run that was broken off goes on. table.py writes the page from it.
"""

import argparse
import functools
import importlib
import importlib.metadata
import json
import os
import pathlib
import subprocess
import sys
import warnings

import ml_dtypes  # noqa: F401  (registers bfloat16 with NumPy)
import problems
import ringproof

os.environ["TRITON_INTERPRET"] = "1"  # PyTorch may import Triton before kernels_triton.py does
HERE = pathlib.Path(__file__).parent
ROOT = HERE.parents[1]
GRADIENTS = ("dq", "dk", "dv")


def kernel_of(implementation):
    """Its adapter; one of a version that requirements.txt does not name gets that version's folder.
    """
    module, function = implementation["kernel"].split(":")
    kernel = getattr(importlib.import_module(module), function)
    if "version" not in implementation:
        return kernel
    wanted = f"{implementation['package']}=={implementation['version']}"
    folder = ROOT / "build/findings" / wanted
    if not folder.exists():
        subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target",
                        str(folder), wanted], check=True)
    return functools.partial(kernel, path=str(folder))


def answers_of(kernel, arguments):
    """The answers, or None and the reason where the implementation declines the problem."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return kernel(arguments), ""
    except Exception as error:  # whatever a library raises: its refusal is part of the record
        return None, (str(error).strip().splitlines() or [type(error).__name__])[0][:100]


def kind(report, explained):
    """What refusals have in common that are filed as one: answers and explanations. A contract
    that was not promised needs none."""
    refused = [name for name, one in report.answers.items() if one["verdict"] == "FAIL"]
    return tuple(refused), tuple(one.id for one in report.explanations) if explained else ()


def filed(implementation, dtype, contract, group, folder):
    """One kind of refusal: how many cases, its smallest, and which contract would accept it."""
    (refused, explanations), cases = group
    _, name, report, arguments = min(cases, key=lambda one: one[0])
    function = implementation["kernel"].split(":")[1]
    package = "-".join([implementation["package"], *implementation.get("version", "").split()])
    parts = [package, function, dtype, name, "-".join(refused)]
    path = folder / (".".join(parts) + ".safetensors")
    path.unlink(missing_ok=True)
    report.save(path)
    fit = ringproof.fit(**arguments, contract=contract, only=list(refused))
    return {"answers": list(refused), "explanations": list(explanations), "cases": len(cases),
            "all": sorted(one[1] for one in cases), "smallest": name, "file": path.name,
            "error_over_bound": report.worst["error_over_bound"] if report.worst else None,
            "fit": fit.tightest, "fit_text": fit.text.splitlines()[-1] if fit.text else ""}


def judged(implementation, dtype, contracts, suite, folder):
    """One record for each contract, the declared one first; the implementation runs once."""
    kernel = kernel_of(implementation)
    records = [{"dtype": dtype, "contract": contract, "cases": 0, "passed": {}, "declined": {},
                "other": []} for contract in contracts]
    groups = [{} for _ in contracts]
    for problem in suite:
        name = problem.name.rsplit(".", 1)[0]
        given = problems.for_judge(problem, dtype, implementation.get("empty_row", "any"))
        arguments = given and problems.for_kernel(given, implementation["takes"])
        if arguments is None:
            continue
        answers, reason = answers_of(kernel, arguments)
        if answers is None:
            records[0]["declined"][name] = reason
            continue
        for record, group in zip(records, groups):
            absorb(record, group, name, given | answers, explained=record is records[0])
    for record, group in zip(records, groups):
        record["refused"] = [filed(implementation, dtype, record["contract"], one, folder)
                             for one in group.items()]
    return records


def absorb(record, groups, name, everything, explained):
    """Judges one answer and counts it; what is refused goes into its group."""
    record["cases"] += 1
    report = ringproof.check(**everything, contract=record["contract"], name=name, threads=1)
    for answer, one in report.answers.items():
        if one["verdict"] == "PASS":
            record["passed"][answer] = record["passed"].get(answer, 0) + 1
    if report.verdict == "FAIL":
        size = sum(everything[tensor].size for tensor in "qkv")
        groups.setdefault(kind(report, explained), []).append((size, name, report, everything))
    elif report.verdict != "PASS":
        undecided = [answer for answer, one in report.answers.items() if one["verdict"] != "PASS"]
        record["other"].append([name, report.verdict, undecided])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("-o", "--output", type=pathlib.Path)
    parser.add_argument("--cases", type=pathlib.Path, default=ROOT / "build/findings/cases")
    parser.add_argument("--suite")
    parser.add_argument("--type", action="append", dest="types")
    parser.add_argument("--missing", action="store_true")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    options.cases.mkdir(parents=True, exist_ok=True)
    everything = json.loads((HERE / "implementations.json").read_text())
    found = recorded(options, everything)
    for implementation in everything:
        label = f"{implementation['package']}: {implementation['name']}"
        if options.names and not any(name in label for name in options.names):
            continue
        for record in grown(implementation, label, found.get(implementation["name"]), options):
            found[record["name"]] = record
            if options.output:
                names = [one["name"] for one in everything if one["name"] in found]
                write(options.output, [found[name] for name in names])


def grown(implementation, label, before, options):
    """The record of an implementation, once more after each type that was judged."""
    version = implementation.get("version") or importlib.metadata.version(implementation["package"])
    suite = options.suite or implementation.get("suite", "full")
    record = {key: implementation[key] for key in ("name", "package", "source", "arithmetic")}
    record |= {"version": version, "runs": []}
    order = list(implementation["contracts"])
    if before and before["version"] == version:
        record["runs"] = [run for run in before["runs"] if run["dtype"] in order]
    for dtype in order:
        of_type = [run for run in record["runs"] if run["dtype"] == dtype]
        if of_type and all(stays(run, implementation, suite, options) for run in of_type) or (
                options.types and dtype not in options.types):
            continue
        record["runs"] = [run for run in record["runs"] if run["dtype"] != dtype]
        contracts = contracts_of(implementation, dtype)
        for one in judged(implementation, dtype, contracts,
                          problems.of_suite(suite, implementation), options.cases):
            one |= {"suite": suite, "declared": one["contract"] == contracts[0]}
            record["runs"].append(one)
            show(f"{label} {version}, {dtype}, {one['contract']}, {suite}", one)
        record["runs"].sort(key=lambda run: order.index(run["dtype"]))
        yield record


def contracts_of(implementation, dtype):
    """The declared contract, and the stricter one if there is one."""
    stricter = implementation.get("stricter", {}).get(dtype)
    return [implementation["contracts"][dtype], *([stricter] if stricter else [])]


def stays(run, implementation, suite, options):
    """With --missing a run that would be repeated as it is."""
    return (options.missing and run["suite"] == suite
            and run["contract"] in contracts_of(implementation, run["dtype"]))


def recorded(options, everything):
    """What the record holds of implementations that are still there, by name."""
    partial = options.names or options.types or options.missing
    if not (partial and options.output and options.output.exists()):
        return {}
    names = [one["name"] for one in everything]
    found = json.loads(options.output.read_text())["implementations"]
    return {one["name"]: one for one in found if one["name"] in names}


def show(label, one):
    print(f"{label}: {one['cases']} cases, passed {one['passed']}, "
          f"declined {len(one['declined'])}, other {one['other']}", flush=True)
    for refusal in one["refused"]:
        print("   refused", json.dumps(refusal), flush=True)


def write(output, found):
    output.write_text(json.dumps({"seed": 1, "implementations": found}, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
