"""ModelProto to OpenModel: names and signatures checked, initialisers gathered, shapes of inputs read."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from mmap import mmap
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from powerlab.domain.errors import PowerlabError
from powerlab.engine.frontend.onnx_reader import schema
from powerlab.engine.frontend.onnx_reader.attributes import to_value
from powerlab.engine.frontend.onnx_reader.file import DataFile
from powerlab.engine.frontend.onnx_reader.narrow_outputs import NarrowOutputs
from powerlab.engine.frontend.onnx_reader.signatures import MICROSOFT_SIGNATURES, SIGNATURES, check_signature
from powerlab.engine.frontend.onnx_reader.tensors import element_type, to_constant
from powerlab.engine.ir.constants import Value
from powerlab.engine.ir.element_types import DTYPES, engine_dtype
from powerlab.engine.ir.graph import Node, Subgraph, TensorInfo, quoted
from powerlab.engine.ir.open_model import OPEN, OpenModel
from powerlab.engine.ir.shapes import sorted_nodes

OLDEST_OPSET = 7
_ONNX_DOMAINS = ("", "ai.onnx")
_MICROSOFT = "com.microsoft"

_GRAPH = 5
"""AttributeProto.AttributeType of a graph."""

_IN_A_SWEEP = "; a sweep gives the batch size alone, so for one export the model with its other sizes fixed"

Shapes = Mapping[str, tuple[int, ...]]


def parse(
    data: bytes | mmap, shapes: Shapes, batch_size: int | None, folder: Path | None, file: DataFile | None = None
) -> OpenModel:
    """Return the model in the bytes of an ONNX file.

    Args:
        data: the file's bytes.
        shapes: input name → shape, for inputs whose shape the file leaves open or the caller wants otherwise.
        batch_size: the size of the first axis of every input not in ``shapes``; None: as the file says.
        folder: where the file lies, for external data.
        file: where ``data`` came from: large constants are read from there when they are asked for, and no constant is
            a view of ``data``, which is mapped. None: constants may be views of ``data``.

    Raises:
        PowerlabError: one sentence, without the file's name.
    """
    model = schema.decode(schema.Model, memoryview(data))
    if model.graph is None or not model.graph.node:
        raise PowerlabError("it holds no ONNX graph; give a file exported as ONNX.")
    opset = _opset(model)
    constants = _constants(model.graph.initializer, folder, file)
    inputs = _inputs(model.graph, constants, shapes, batch_size)
    nodes = _Nodes(opset, folder, file, NarrowOutputs.of(model.graph)).read(model.graph.node)
    if not model.graph.output:
        raise PowerlabError("its graph has no outputs; export the model again.")
    return OpenModel(
        model.graph.name or "model",
        nodes,
        tuple(one.info for one in inputs),
        {value.name: _declared(value) for value in model.graph.output},
        constants,
        _other_floats(model.graph),
        frozenset(one.info.name for one in inputs if one.open_rank),
        next((one.hint for one in inputs if one.hint), ""),
        opset,
    )


def _declared(value: schema.ValueInfo) -> tuple[int, ...]:
    """Return the shape that the file declares for an output, where it does."""
    kind = value.type.tensor_type
    axes = kind.shape.dim if kind is not None and kind.shape is not None else ()
    return tuple(OPEN if axis.dim_value is None or axis.dim_value < 0 else axis.dim_value for axis in axes)


def _other_floats(message: schema.GraphMessage) -> dict[str, np.dtype[Any]]:
    """Return the types of inputs and outputs that the file declares as floats, but not as float32."""
    kinds = {value.name: value.type.tensor_type for value in (*message.input, *message.output)}
    dtypes = {name: DTYPES.get(kind.elem_type) for name, kind in kinds.items() if kind is not None}
    return {name: dtype for name, dtype in dtypes.items() if dtype is not None and dtype != engine_dtype(dtype)}


def _opset(model: schema.Model) -> int:
    version = max((entry.version for entry in model.opset_import if entry.domain in _ONNX_DOMAINS), default=0)
    if version < OLDEST_OPSET:
        raise PowerlabError(f"it uses ONNX opset {version}; export the model with opset {OLDEST_OPSET} or newer.")
    return version


def _constants(tensors: Iterable[schema.Tensor], folder: Path | None, file: DataFile | None) -> dict[str, Value]:
    constants: dict[str, Value] = {}
    for tensor in tensors:
        if tensor.name in constants:
            raise PowerlabError(f"it holds the tensor {quoted(tensor.name)} twice; export the model again.")
        constants[tensor.name] = to_constant(tensor, folder, file)
    return constants


def _bare(message: schema.NodeMessage, name: str) -> Node:
    """Return a node as error messages name it."""
    return Node(message.op_type, name, (), tuple(message.output))


def _signatures(message: schema.NodeMessage, name: str) -> Mapping[str, tuple[int, str]]:
    """Return the signatures of a node's domain.

    Raises:
        PowerlabError: the engine has no operator of that name from there.
    """
    operator = message.op_type
    if message.domain == _MICROSOFT and operator in MICROSOFT_SIGNATURES:
        return MICROSOFT_SIGNATURES
    if message.domain not in _ONNX_DOMAINS:
        raise PowerlabError(
            f"{_bare(message, name)} comes from the domain {quoted(message.domain)}; the engine has ONNX's own "
            "operators and some of ONNX Runtime's for quantized tensors."
        )
    if operator not in SIGNATURES and operator in MICROSOFT_SIGNATURES:
        raise PowerlabError(
            f"{_bare(message, name)} is an operator of {_MICROSOFT}, but comes from ONNX's own; export the model again."
        )
    return SIGNATURES


class _Nodes(Struct, frozen=True):
    """Reads nodes of one file.

    Attributes:
        opset: version of ONNX's operators.
        folder: where external data lie.
        file: as :func:`parse` got it.
        narrow: what tells which nodes make elements of types that numpy lacks.
    """

    opset: int
    folder: Path | None
    file: DataFile | None
    narrow: NarrowOutputs

    def read(self, messages: Iterable[schema.NodeMessage]) -> tuple[Node, ...]:
        return tuple([self._node(message, index) for index, message in enumerate(messages)])

    def _node(self, message: schema.NodeMessage, index: int) -> Node:
        name = message.name or next(filter(None, message.output), f"#{index}")
        inputs = list(message.input)
        while inputs and not inputs[-1]:
            inputs.pop()  # an optional input at the end may be left out or be called ""
        signatures = _signatures(message, name)
        if not any(message.output):
            raise PowerlabError(f"{_bare(message, name)} has no output; export the model again.")
        given = self._attributes(message, name) if message.attribute else {}
        node = Node(message.op_type, name, tuple(inputs), tuple(message.output), given)
        check_signature(node, signatures)
        attributes = self._of_now(node.op_type, self.narrow.stated(message, node.attributes))
        return node if attributes is node.attributes else replace(node, attributes=attributes)

    def _attributes(self, message: schema.NodeMessage, name: str) -> dict[str, object]:
        found: dict[str, object] = {}
        for attribute in message.attribute:
            if attribute.name in found:
                raise PowerlabError(
                    f"{_bare(message, name)} has the attribute {quoted(attribute.name)} twice; export the model again."
                )
            try:
                found[attribute.name] = self._value(attribute)
            except PowerlabError as error:
                raise PowerlabError(f"{_bare(message, name)}: {error}") from None
        return found

    def _of_now(self, op_type: str, attributes: Mapping[str, object]) -> Mapping[str, object]:
        """Return the attributes that a node of the file's opset would have in a newer one."""
        if op_type in ("Hardmax", "LogSoftmax", "Softmax") and self.opset < 13:
            # Until opset 13 Softmax saw its input as a matrix, rows before ``axis``, columns from it on.
            return {"axis": 1, **attributes, "flattens": 1}
        if op_type == "DFT" and self.opset < 20:
            return {"axis": 1, **attributes}  # the second of all, from then on the last but one
        if op_type == "Scan" and self.opset < 9:
            return {**attributes, "batched": 1}
        if op_type == "RoiAlign" and self.opset < 16:
            # Until opset 16 regions began at the corners of pixels.
            return {**attributes, "coordinate_transformation_mode": "output_half_pixel"}
        return attributes

    def _value(self, attribute: schema.Attribute) -> object:
        if attribute.type != _GRAPH or attribute.g is None or attribute.ref_attr_name:
            return to_value(attribute, self.folder)
        message = attribute.g
        constants = _constants(message.initializer, self.folder, self.file)
        inputs = tuple(value.name for value in message.input)
        body = Subgraph(self.read(message.node), inputs, tuple(value.name for value in message.output), constants)
        return replace(body, nodes=sorted_nodes(body.nodes, {*inputs, *constants, *body.captured()}))


class _Input(Struct, frozen=True):
    """An input, and where its shape is open, a sentence that says how to give it."""

    info: TensorInfo
    hint: str = ""
    open_rank: bool = False


def _inputs(
    graph: schema.GraphMessage, constants: Collection[str], shapes: Shapes, batch_size: int | None
) -> tuple[_Input, ...]:
    """Return the true inputs: until IR version 4 initialisers are listed as inputs too."""
    values = [value for value in graph.input if value.name not in constants]
    names = [value.name for value in values]
    if len(set(names)) < len(names):
        raise PowerlabError("it lists an input twice; export the model again.")
    for name in shapes:
        if name not in names:
            raise PowerlabError(
                f"it has no input {quoted(name)}; its inputs are {', '.join(map(quoted, names)) or 'none'}."
            )
    return tuple(_input(value, shapes.get(value.name), batch_size) for value in values)


def _input(value: schema.ValueInfo, wanted: tuple[int, ...] | None, batch_size: int | None) -> _Input:
    kind = value.type.tensor_type
    if kind is None:
        raise PowerlabError(f"its input {quoted(value.name)} is not a tensor; the engine takes tensors only.")
    dtype: np.dtype[Any] = engine_dtype(element_type(kind.elem_type, f"its input {quoted(value.name)}"))
    axes = kind.shape.dim if kind.shape is not None else None
    if wanted is not None:
        if axes is not None and len(axes) != len(wanted):
            raise PowerlabError(
                f"its input {quoted(value.name)} has {len(axes)} axes, but the shape {wanted} was given."
            )
        return _Input(TensorInfo(value.name, _positive(value.name, wanted), dtype))
    if axes is None:
        hint = f"its input {quoted(value.name)} has no shape; {_how(value.name, ['1', '3', '224', '224'])}."
        return _Input(TensorInfo(value.name, (), dtype), hint, open_rank=True)
    sizes = [OPEN if axis.dim_value is None or axis.dim_value < 1 else axis.dim_value for axis in axes]
    if batch_size is not None and sizes:
        sizes[0] = batch_size
    hint = ""
    if OPEN in sizes:
        index = sizes.index(OPEN)
        guess = ["1" if size == OPEN else str(size) for size in sizes]
        label = f" ({quoted(axes[index].dim_param)})" if axes[index].dim_param else ""
        how = _how(value.name, guess) + ("" if batch_size is None else _IN_A_SWEEP)
        hint = f"its input {quoted(value.name)} leaves the size of axis {index}{label} open; {how}."
    return _Input(TensorInfo(value.name, tuple(sizes), dtype), hint)


def _positive(name: str, shape: tuple[int, ...]) -> tuple[int, ...]:
    if any(size < 1 for size in shape):
        raise PowerlabError(f"the shape {shape} given for input {quoted(name)} has a dimension of size 0 or less.")
    return tuple(int(size) for size in shape)


def _how(name: str, sizes: list[str]) -> str:
    inside = ", ".join(sizes) + ("," if len(sizes) == 1 else "")
    key = json.dumps(name[:80])
    flag = f"--input-shape {name[:80] if name.isprintable() else key}={'x'.join(sizes)}"
    return f"give it, for example shapes={{{key}: ({inside})}} or {flag}"
