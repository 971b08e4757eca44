"""Small model files for the tests: LiteRT flatbuffers written tensor by tensor, ONNX graphs behind one input."""

import numpy as np


def write_litert(path, *tensors, operator=None, reads=(), writes=()):
    """A .tflite file of one operator (a name of BuiltinOperator), or whose graph hands its inputs through.

    `tensors` are keywords: name, shape, type (a name of TensorType), scale and zero_point (lists), axis, signature
    (the shape with -1 for open extents) and data (bytes of a constant, which is no input then). `reads` and `writes`
    are the positions of what the operator reads and writes.
    """
    import flatbuffers
    from ai_edge_litert import schema_py_generated as schema

    model, graph = schema.ModelT(), schema.SubGraphT()
    model.version, model.subgraphs, model.operatorCodes = 3, [graph], []
    model.buffers = [schema.BufferT()]  # the first is empty by convention
    graph.tensors, graph.inputs, graph.outputs, graph.operators = [], [], [], []
    for i, given in enumerate(tensors):
        tensor = schema.TensorT()
        tensor.name, tensor.shape = given["name"], list(given["shape"])
        tensor.type = getattr(schema.TensorType, given["type"])
        if "signature" in given:
            tensor.shapeSignature = list(given["signature"])
        if "scale" in given:
            tensor.quantization = schema.QuantizationParametersT()
            tensor.quantization.scale = given["scale"]
            tensor.quantization.zeroPoint = given.get("zero_point", [0] * len(given["scale"]))
            tensor.quantization.quantizedDimension = given.get("axis", 0)
        if "data" in given:
            tensor.buffer = len(model.buffers)
            model.buffers.append(schema.BufferT())
            model.buffers[-1].data = list(given["data"])
        elif i not in writes:
            graph.inputs.append(i)
        graph.tensors.append(tensor)
    graph.outputs = list(writes or range(len(tensors)))
    if operator is not None:
        code, step = schema.OperatorCodeT(), schema.OperatorT()
        code.builtinCode = getattr(schema.BuiltinOperator, operator)
        code.deprecatedBuiltinCode, code.version = code.builtinCode, 3
        step.opcodeIndex, step.inputs, step.outputs = 0, list(reads), list(writes)
        model.operatorCodes, graph.operators = [code], [step]
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), b"TFL3")
    path.write_bytes(builder.Output())
    return path


def write_onnx(path, dtype, shape, *nodes, opset=21, **constants):
    """An .onnx file with one input "x"; `nodes` are what onnx.helper.make_node takes, and outputs what they write."""
    import onnx
    from onnx import helper

    made = [helper.make_node(kind, reads, [writes], **attributes) for kind, reads, writes, attributes in nodes]
    graph = helper.make_graph(
        made or [helper.make_node("Identity", ["x"], ["y"])],
        "test",
        [helper.make_tensor_value_info("x", helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), shape)],
        [helper.make_empty_tensor_value_info(node.output[0]) for node in made] or
        [helper.make_empty_tensor_value_info("y")],
        [onnx.numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    # Version 10 belongs to opset 21; by default it is the newest, which ONNX Runtime may not know yet.
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10), path)
    return path
