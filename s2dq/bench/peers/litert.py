"""LiteRT (TensorFlow Lite): its four operators where they are the case, TRANSPOSE for everything; XNNPACK by default.

The models are written with the schema that comes with LiteRT, so that TensorFlow is not needed.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..cases import Case
from ..recipe import Move, Pad, Shape, cropped_shape, formats, padded_shape, recipe
from ..timing import Call
from . import signed, those_that_work

if TYPE_CHECKING:  # set_up imports
    import flatbuffers
    from ai_edge_litert import schema_py_generated as schema
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

TYPES = {"int8": "INT8", "uint8": "UINT8", "int16": "INT16", "int32": "INT32", "int64": "INT64",
         "float16": "FLOAT16", "float32": "FLOAT32", "float64": "FLOAT64"}
RESOLVERS = {"XNNPACK": "AUTO", "built in": "BUILTIN_WITHOUT_DEFAULT_DELEGATES"}
settings: dict[str, Any] = {}


def set_up(threads: int) -> None:
    global Interpreter, OpResolverType, flatbuffers, schema
    import flatbuffers
    from ai_edge_litert import schema_py_generated as schema
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    settings["num_threads"] = threads


def calls(case: Case, x: Any) -> list[Call]:
    x = signed(x)
    builders = [lambda resolver=resolver: model_calls("TRANSPOSE", recipe_model(case, x), x, resolver)
                for resolver in RESOLVERS]
    if native_model(case, x):
        builders += [lambda resolver=resolver: model_calls("native", native_model(case, x), x, resolver)
                     for resolver in RESOLVERS]
    return those_that_work(*builders)


def model_calls(label: str, model: Any, x: Any, resolver: str) -> list[Call]:
    interpreter = Interpreter(model_content=model.to_bytes(), **settings,
                              experimental_op_resolver_type=OpResolverType[RESOLVERS[resolver]])
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
    out = interpreter.tensor(interpreter.get_output_details()[0]["index"])
    names = {"invoke": interpreter.invoke, "interpreter": interpreter, "out": out}
    # A copy: LiteRT refuses to run while anybody holds a view of its memory.
    return [Call(f"{label}, {resolver}", "invoke()", [names], fresh=False, to_numpy=lambda out: out().copy())]


class Model:
    """A model with one input and a chain of operators; each adds its output."""

    def __init__(self, x: Any, zero_point: int = 0) -> None:
        self.model = schema.ModelT(version=3, operatorCodes=[], buffers=[schema.BufferT()], subgraphs=[])
        self.graph = schema.SubGraphT(tensors=[], operators=[], inputs=[0], outputs=[0])
        self.model.subgraphs.append(self.graph)
        self.type, self.zero_point = getattr(schema.TensorType, TYPES[str(x.dtype)]), zero_point
        self.last = self.tensor(x.shape, self.type)

    def tensor(self, shape: Sequence[int], kind: Any, data: np.ndarray | None = None) -> int:
        """Add a tensor, with its values if they are constant, and return its number."""
        number = 0
        if data is not None:
            self.model.buffers.append(schema.BufferT(data=np.frombuffer(data.tobytes(), np.uint8)))
            number = len(self.model.buffers) - 1
        quantization = None
        if kind == self.type and kind in (schema.TensorType.INT8, schema.TensorType.UINT8):
            quantization = schema.QuantizationParametersT(scale=[1.0], zeroPoint=[self.zero_point])
        self.graph.tensors.append(schema.TensorT(shape=list(shape), type=kind, buffer=number, quantization=quantization,
                                                 name=f"t{len(self.graph.tensors)}", hasRank=True))
        return len(self.graph.tensors) - 1

    def constant(self, values: Any) -> int:
        values = np.array(values, np.int32)
        return self.tensor(values.shape, schema.TensorType.INT32, values)

    def add(self, kind: str, options: str, inputs: list[Any], shape: Sequence[int], **values: Any) -> None:
        """Add an operator that takes the last tensor and these."""
        code = getattr(schema.BuiltinOperator, kind)
        operator_code = schema.OperatorCodeT(deprecatedBuiltinCode=min(code, 127), builtinCode=code, version=1)
        self.model.operatorCodes.append(operator_code)
        output = self.tensor(shape, self.type)
        self.graph.operators.append(schema.OperatorT(
            opcodeIndex=len(self.model.operatorCodes) - 1, inputs=[self.last, *inputs], outputs=[output],
            builtinOptionsType=getattr(schema.BuiltinOptions, options),
            builtinOptions=getattr(schema, options + "T")(**values)))
        self.last, self.graph.outputs = output, [output]

    def to_bytes(self) -> bytes:
        builder = flatbuffers.Builder(1024)
        builder.Finish(self.model.Pack(builder), b"TFL3")
        return bytes(builder.Output())


def recipe_model(case: Case, x: Any) -> Model:
    model, shape = Model(x), x.shape
    for step in recipe(case):
        if isinstance(step, Pad):
            shape = padded_shape(step, shape)
            value = model.tensor((1,), model.type, x.dtype.type([step.value]))
            model.add("PADV2", "PadV2Options", [model.constant(step.margins), value], shape)
        elif isinstance(step, Move):
            reshape(model, step.split)
            model.add("TRANSPOSE", "TransposeOptions", [model.constant(step.order)], step.transposed)
            reshape(model, step.shape)
            shape = step.shape
        else:
            starts, shape = np.array(step.margins, np.int32)[:, 0], cropped_shape(step, shape)
            model.add("SLICE", "SliceOptions", [model.constant(starts), model.constant(shape)], shape)
    return model


def reshape(model: Model, shape: Shape) -> None:
    model.add("RESHAPE", "ReshapeOptions", [model.constant(shape)], shape, newShape=list(shape))


def native_model(case: Case, x: Any) -> Model | None:
    """The operator itself, or None: NHWC and DCR alone."""
    arguments = case.arguments
    if case.operator in ("space_to_batch_nd", "batch_to_space_nd"):
        to_batch = case.operator == "space_to_batch_nd"
        model = Model(x, zero_point=arguments.get("pad_value", 0))
        margins = arguments["paddings" if to_batch else "crops"]
        kind, options = (("SPACE_TO_BATCH_ND", "SpaceToBatchNDOptions") if to_batch else
                         ("BATCH_TO_SPACE_ND", "BatchToSpaceNDOptions"))
        inputs = [model.constant(arguments["block_shape"]), model.constant(margins)]
        model.add(kind, options, inputs, (1,) * len(case.shape))  # the interpreter works the shape out
        return model
    kinds = {"space_to_depth": ("SPACE_TO_DEPTH", "SpaceToDepthOptions"),
             "depth_to_space": ("DEPTH_TO_SPACE", "DepthToSpaceOptions")}
    if case.operator not in kinds or set(arguments) - {"block_size", "data_format"} or formats(case)[0] != "NHWC":
        return None
    model = Model(x)
    model.add(*kinds[case.operator], [], (1,) * 4, blockSize=arguments["block_size"])
    return model
