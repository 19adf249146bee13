"""The messages of an ONNX file: model, graph, node, attribute, tensor.

Source: https://github.com/onnx/onnx/blob/main/onnx/onnx.proto.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from powerlab.domain.errors import PowerlabError
from powerlab.engine.frontend.onnx_writer.wire import content, integer, integers, real, text
from powerlab.engine.ir.element_types import DTYPES
from powerlab.engine.ir.graph import Array, Graph, Node, TensorInfo

_IR_VERSION = 10
_NUMBERS = {dtype: number for number, dtype in DTYPES.items()}


def model_message(graph: Graph) -> bytes:
    """Return a ModelProto."""
    opset = content(8, text(1, "") + integer(2, graph.opset))
    return integer(1, _IR_VERSION) + text(2, "powerlab") + content(7, _graph(graph)) + opset


def _graph(graph: Graph) -> bytes:
    parts = [content(1, _node(node)) for node in graph.nodes]
    parts.append(text(2, graph.name))
    parts += [content(5, _tensor(name, graph.constants[name])) for name in graph.kept_constants]
    parts += [content(11, _value_info(info)) for info in graph.inputs]
    parts += [content(12, _value_info(info)) for info in graph.outputs]
    return b"".join(parts)


def _node(node: Node) -> bytes:
    named = [text(1, name) for name in node.inputs] + [text(2, name) for name in _output_names(node)]
    attributes = [content(5, _attribute(node, name, value)) for name, value in node.attributes.items()]
    return b"".join((*named, text(3, node.name), text(4, node.op_type), *attributes))


def _output_names(node: Node) -> list[str]:
    """Return the names of a node's outputs: those that nobody reads have none, but each part of a Split must."""
    if node.op_type != "Split":
        return list(node.outputs)
    return [name or f"{node.outputs[0]}.unread{index}" for index, name in enumerate(node.outputs)]


def _attribute(node: Node, name: str, value: object) -> bytes:
    match value:
        case int():
            kind, written = 2, integer(3, int(value))
        case float():
            kind, written = 1, real(2, value)
        case str():
            kind, written = 3, text(4, value)
        case np.ndarray():
            kind, written = 4, content(5, _tensor("", value))
        case tuple() if all(isinstance(one, int) for one in value):
            kind, written = 7, integers(8, value)
        case tuple() if all(isinstance(one, (int, float)) for one in value):
            kind, written = 6, content(7, b"".join(struct.pack("<f", one) for one in value))
        case tuple() if all(isinstance(one, str) for one in value):
            kind, written = 8, b"".join(text(9, one) for one in value)
        case _:
            raise PowerlabError(f"{node} has the attribute {name!r}, which cannot be written to an ONNX file.")
    return text(1, name) + written + integer(20, kind)


def _tensor(name: str, value: Array) -> bytes:
    dims = integers(1, value.shape) if value.shape else b""
    raw = np.ascontiguousarray(value).astype(value.dtype.newbyteorder("<"), copy=False).tobytes()
    return dims + integer(2, element_number(value.dtype)) + text(8, name) + content(9, raw)


def _value_info(info: TensorInfo) -> bytes:
    sizes = b"".join(content(1, integer(1, size)) for size in info.shape)
    kind = integer(1, element_number(info.dtype)) + content(2, sizes)
    return text(1, info.name) + content(2, content(1, kind))


def element_number(dtype: np.dtype[Any]) -> int:
    """Return ONNX's number of a type."""
    return _NUMBERS[dtype.newbyteorder("<") if dtype.itemsize > 1 else dtype]
