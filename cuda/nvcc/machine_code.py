#!/usr/bin/env python3
"""Looks into compiled kernels: do they spill, and are the instructions they are named for there?

    machine_code.py OBJECT...      next to each NAME.o lies NAME.ptxas.txt, what ptxas said

Reads the ELF files that nvcc puts into its objects uncompressed, so no tool beside nvcc is needed.
Exit status 1 if a tensor core kernel spills or lacks an instruction, or a step has no code.
"""

import pathlib
import re
import struct
import sys

EM_CUDA = 190
INSTRUCTION_BYTES = 16
# The low twelve bits of an instruction, from compute capability 8.0 on.
OPCODES = {0x23C: "HMMA", 0x83B: "LDSM", 0xFAE: "LDGSTS"}
# What a kernel must contain: matrix products, matrix loads, asynchronous copies.
NEEDED = {"tensor_cores": {"HMMA", "LDSM"}, "async_copy": {"HMMA", "LDSM", "LDGSTS"}}
STEPS = ["naive", "shared_tiles", "register_tiles", "warp_rows", "tensor_cores", "async_copy"]


def sections(image):
    """(name, bytes) of each section of a 64-bit ELF image."""
    table, = struct.unpack_from("<Q", image, 0x28)
    size, count, names = struct.unpack_from("<HHH", image, 0x3A)
    headers = [struct.unpack_from("<IIQQQQIIQQ", image, table + n * size) for n in range(count)]
    text = headers[names][4]
    for name, kind, _, _, offset, length, *_ in headers:
        start = text + name
        label = image[start:image.index(b"\0", start)].decode()
        yield label, b"" if kind == 8 else image[offset:offset + length]


def images(data):
    """The device's ELF images inside an object file."""
    at = data.find(b"\x7fELF", 1)
    while at >= 0:
        if len(data) > at + 64 and struct.unpack_from("<H", data, at + 0x12)[0] == EM_CUDA:
            yield data[at:]
        at = data.find(b"\x7fELF", at + 4)


def instructions(code):
    """How often each known instruction occurs."""
    counts = dict.fromkeys(OPCODES.values(), 0)
    for at in range(0, len(code) - INSTRUCTION_BYTES + 1, INSTRUCTION_BYTES):
        word, = struct.unpack_from("<Q", code, at)
        if name := OPCODES.get(word & 0xFFF):
            counts[name] += 1
    return counts


def step_of(symbol):
    """The step of the ladder to which a mangled name belongs."""
    return next((step for step in STEPS if f"{len(step)}{step}I" in symbol), None)


def kernels(path):
    """(step, counts) of every kernel in an object."""
    for image in images(path.read_bytes()):
        for name, code in sections(image):
            if name.startswith(".text.") and (step := step_of(name)):
                yield step, instructions(code)


def spills(log):
    """(kernel, registers, bytes spilt) from what ptxas said."""
    entry = None
    for line in log.read_text(encoding="utf-8").splitlines():
        if found := re.search(r"Function properties for (\S+)", line):
            entry, spilt = found.group(1), 0
        elif found := re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", line):
            spilt = int(found.group(1)) + int(found.group(2))
        elif (found := re.search(r"Used (\d+) registers", line)) and entry:
            yield entry, int(found.group(1)), spilt


def main(paths):
    wrong, seen = [], {}
    for path in map(pathlib.Path, paths):
        for step, counts in kernels(path):
            seen.setdefault(step, []).append(counts)
            wrong += [f"{step}: no {name}" for name in NEEDED.get(step, ()) if not counts[name]]
        for kernel, registers, spilt in spills(path.with_suffix(".ptxas.txt")):
            step = step_of(kernel)
            if step:
                seen.setdefault(step + " registers", []).append(registers)
            if step in NEEDED and spilt:
                wrong.append(f"{kernel}: spills {spilt} bytes")
    for step in STEPS:
        if step not in seen:
            wrong.append(f"{step}: no code found")
            continue
        most = {name: max(c[name] for c in seen[step]) for name in OPCODES.values()}
        registers = max(seen.get(step + " registers", [0]))
        text = ", ".join(f"{count} {name}" for name, count in most.items() if count)
        print(f"{step:15} {len(seen[step]):3} kernels, at most {registers} registers; {text}")
    for sentence in sorted(set(wrong)):
        print(f"machine_code: {sentence}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
