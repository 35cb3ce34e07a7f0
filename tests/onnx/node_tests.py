"""Writes the node tests of the ONNX operator Attention, as the package `onnx` makes them.

    python3 tests/onnx/node_tests.py FOLDER

One folder a test: model.onnx and test_data_set_0/{input,output}_N.pb. Forms in which the operator
is expanded into others hold the same numbers and are left out. Needs the package from PyPI.
"""

import pathlib
import sys

import onnx.backend.test.case.node as node
from onnx import TensorProto, numpy_helper


def store(folder, kind, values, infos):
    for number, (value, info) in enumerate(zip(values, infos)):
        if not isinstance(value, TensorProto):
            value = numpy_helper.from_array(value, info.name)
        (folder / f"{kind}_{number}.pb").write_bytes(value.SerializeToString())


def main(target):
    written = 0
    for case in node.collect_testcases("Attention"):
        if "_expanded" in case.name or not case.name.startswith("test_attention"):
            continue
        data = target / case.name / "test_data_set_0"
        data.mkdir(parents=True, exist_ok=True)
        (data.parent / "model.onnx").write_bytes(case.model.SerializeToString())
        inputs, outputs = case.data_sets[0]
        store(data, "input", inputs, case.model.graph.input)
        store(data, "output", outputs, case.model.graph.output)
        written += 1
    print(f"{written} node tests of onnx {onnx.__version__}")


if __name__ == "__main__":
    import onnx
    main(pathlib.Path(sys.argv[1]))
