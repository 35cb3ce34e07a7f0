"""Runtimes: ONNX Runtime, ONNX's reference evaluator, OpenVINO, MLX; all on a processor."""

import ml_dtypes
import numpy

ORDER = ("q", "k", "v")


def _onnx_model(given):
    """A model of one node, Attention of opset 23, and its inputs."""
    from onnx import parser
    feeds = {name: given[name] for name in ORDER}
    if "bias" in given:
        hidden = ~given["mask"] if "mask" in given else numpy.zeros(1, bool)
        feeds["mask"] = numpy.where(hidden, -numpy.inf, given["bias"]).astype(numpy.float32)
    elif "mask" in given:
        feeds["mask"] = given["mask"]
    if "mask" in feeds:
        shape = (*given["q"].shape[:3], given["k"].shape[2])
        feeds["mask"] = numpy.ascontiguousarray(numpy.broadcast_to(feeds["mask"], shape))
    terms = [f"{name} = {float(given[name])!r}" for name in ("scale", "softcap") if name in given]
    terms += ["is_causal = 1"] if given.get("causal") else []
    kinds = {"float32": "float", "bool": "bool"}
    inputs = ", ".join(f"{kinds[array.dtype.name]}{list(array.shape)} {name}"
                       for name, array in feeds.items())
    shape = [*given["q"].shape[:3], given["v"].shape[3]]
    model = parser.parse_model(
        f'<ir_version: 11, opset_import: ["": 23]> attention ({inputs}) => (float{shape} out) '
        f'{{ out = Attention <{", ".join(terms)}> ({", ".join(feeds)}) }}')
    return model, feeds


def onnxruntime(given):
    import onnxruntime as runtime
    model, feeds = _onnx_model(given)
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    runner = runtime.InferenceSession(model.SerializeToString(), options,
                                      providers=["CPUExecutionProvider"])
    return {"out": runner.run(None, feeds)[0]}


def onnx_reference(given):
    from onnx.reference import ReferenceEvaluator
    model, feeds = _onnx_model(given)
    with numpy.errstate(all="ignore"):
        return {"out": ReferenceEvaluator(model).run(None, feeds)[0]}


def openvino(given):
    import openvino
    from openvino import opset13
    feeds = [given[name] for name in ORDER]
    if "bias" in given or "mask" in given:
        shape = (*given["q"].shape[:3], given["k"].shape[2])
        addend = given.get("bias", numpy.zeros(1, numpy.float32))
        addend = numpy.where(given.get("mask", True), addend, -numpy.inf).astype(numpy.float32)
        feeds.append(numpy.ascontiguousarray(numpy.broadcast_to(addend, shape)))
    inputs = [opset13.parameter(array.shape, array.dtype) for array in feeds]
    scale = opset13.constant(numpy.float32(given["scale"]))
    mask = inputs[3] if len(inputs) > 3 else opset13.constant(numpy.zeros((1, 1), numpy.float32))
    node = opset13.scaled_dot_product_attention(*inputs[:3], mask, scale,
                                                causal=bool(given.get("causal")))
    model = openvino.Core().compile_model(openvino.Model([node], inputs), "CPU",
                                          {"INFERENCE_PRECISION_HINT": "f32"})
    return {"out": numpy.array(model(feeds)[0])}


def mlx(given):
    import mlx.core as mx
    mx.set_default_device(mx.cpu)
    narrow = given["q"].dtype == ml_dtypes.bfloat16

    def array(name):
        if not narrow or given[name].dtype == bool:
            return mx.array(given[name])
        return mx.array(given[name].astype(numpy.float32)).astype(mx.bfloat16)

    mask = array("mask") if "mask" in given else "causal" if given.get("causal") else None
    if "bias" in given:
        mask = array("bias") if mask is None else mx.where(mask, array("bias"), -mx.inf)
    sinks = array("sinks") if "sinks" in given else None
    outs, gradients = mx.vjp(
        lambda q, k, v: mx.fast.scaled_dot_product_attention(q, k, v, scale=given["scale"],
                                                             mask=mask, sinks=sinks),
        [array(name) for name in ORDER], [array("dout")])
    answers = dict(zip(("out", "dq", "dk", "dv"), [*outs, *gradients]))
    dtype = given["q"].dtype
    return {name: numpy.array(answer.astype(mx.float32)).astype(dtype)
            for name, answer in answers.items()}
