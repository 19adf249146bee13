"""A quantized network as ncnn takes it: in floats, beside the largest number of what its layers read.

ncnn makes bytes of weights and inputs itself, by the scales it is given, with 0 in the middle of signed bytes. So
numbers of which none is below 0, as behind a ReLU, have seven bits there, where others have eight from the same
calibration. Source: https://github.com/Tencent/ncnn/wiki/quantized-int8-inference and the layers' ``load_model``.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import cast

import numpy as np
from msgspec import Struct

from powerlab.backends.ncnn_writer import Floats, Writer
from powerlab.domain.errors import PowerlabError
from powerlab.engine.codegen.attributes import number
from powerlab.engine.ir.graph import Array, Graph, Node, TensorInfo
from powerlab.engine.ops.quantization import dequantized_value, limits_of, quantized_dtype
from powerlab.engine.ops.view import NodeView

_LARGEST_BYTE = 127
_KIND, _REQUANTIZED = 8, 100
"""The parameter of a layer that computes with bytes, and what is added to it where its result is bytes, too."""
_LAYERS = frozenset({"Conv", "Gemm", "MatMul"})
_NEVER_BELOW_0 = frozenset({"Relu", "Sigmoid", "HardSigmoid", "Softmax"})
_KEEPS_SIGNS = frozenset(
    {
        *("AveragePool", "Concat", "DequantizeLinear", "Dropout", "Flatten", "GlobalAveragePool", "LRN"),
        *("MaxPool", "QuantizeLinear", "Reshape"),
    }
)


class WithoutBytes(Struct, frozen=True):
    """A quantized network with floats in place of its bytes.

    Attributes:
        graph: of which nothing is rounded, but the weights are what rounding left of them.
        largest: tensors that layers read as bytes -> the largest number they could be, positive or negative.
    """

    graph: Graph
    largest: Mapping[str, float]


def without_bytes(graph: Graph) -> WithoutBytes:
    """Return a loaded network of QuantizeLinear and DequantizeLinear in floats.

    Raises:
        PowerlabError: a scale is computed, or bytes come from elsewhere, as from QLinearConv.
    """
    producers, ends = graph.producers(), graph.output_names()
    nodes: list[Node] = []
    added: list[TensorInfo] = []
    constants: dict[str, Array] = {}
    largest: dict[str, float] = {}
    floats: dict[str, str] = {}  # bytes, and floats made of them -> the floats they stand for

    @cache
    def is_below_0(name: str) -> bool:
        made = producers.get(name)
        if made is None or made.op_type not in _KEEPS_SIGNS:
            low = graph.constants.get(made.input(1)) if made is not None and made.op_type == "Clip" else None
            return made is None or not (made.op_type in _NEVER_BELOW_0 or (low is not None and float(low) >= 0))
        return any(is_below_0(source) for source in made.inputs if source not in graph.constants)

    for node in graph.nodes:
        match node.op_type:
            case "QuantizeLinear" if node.inputs[0] not in graph.constants:
                source = floats.get(node.inputs[0], node.inputs[0])
                view = _view(graph, node)
                largest[source] = _largest(view)
                # Bytes may be all there is of an activation.
                begins_at_0 = bool((_zero(view) == limits_of(view)[0]).all())
                if begins_at_0 and is_below_0(node.inputs[0]):
                    clamped = f"{node.outputs[0]} as floats"
                    nodes.append(Node("Relu", clamped, (source,), (clamped,)))
                    added.append(TensorInfo(clamped, graph.shape(source)))
                    largest[clamped] = largest[source]
                    source = clamped
                floats[node.outputs[0]] = source
            case "DequantizeLinear" if node.inputs[0] in graph.constants:
                constants[node.outputs[0]] = dequantized_value(_view(graph, node), graph.constants[node.inputs[0]])
            case "DequantizeLinear":
                if node.inputs[0] not in floats:
                    raise PowerlabError(f"ncnn takes no bytes that {node} reads; use another engine for this model.")
                floats[node.outputs[0]] = source = floats[node.inputs[0]]
                if node.outputs[0] in ends:
                    nodes.append(Node("Identity", node.name, (source,), node.outputs))
            case _:
                nodes.append(node.renamed({name: floats[name] for name in node.inputs if name in floats}, node.name))
    for node in graph.nodes:
        if node.op_type in _LAYERS:  # one that is to stay in floats: all that read the same do
            largest.pop(node.inputs[0], None)
    return WithoutBytes(graph.rewritten(nodes, constants=constants, tensors=added), largest)


def _view(graph: Graph, node: Node) -> NodeView:
    """Return a QuantizeLinear or DequantizeLinear that has one known scale, or a row of them."""
    view = NodeView.of(graph, node)
    if not view.is_known(1) or len(view.shape(1)) > 1:
        raise PowerlabError(
            f"{node} has a scale that is computed, or one a block, which ncnn does not take; use another engine for "
            "this model."
        )
    return view


def _zero(view: NodeView) -> Array:
    return view.value(2) if view.has(2) else np.zeros((), quantized_dtype(view))


def _largest(view: NodeView) -> float:
    """Return the largest number, positive or negative, that has a byte."""
    kind = quantized_dtype(view)
    if kind not in (np.uint8, np.int8):
        raise PowerlabError(f"{view.node} makes {kind} of floats, and ncnn bytes alone; use another engine.")
    (low, high), zero = limits_of(view), _zero(view).astype(np.float64)
    return float((view.value(1) * np.maximum(high - zero, zero - low)).max())


def in_bytes(
    writer: Writer, node: Node, values: Floats, *, is_whole: bool = False
) -> tuple[dict[int, object], list[bytes]]:
    """Return the parameter by which a layer computes with bytes, and the scales behind its weights; none for floats.

    Args:
        writer: which knows the largest number of each tensor that is to be bytes.
        node: a convolution, or what is fully connected.
        values: its weights, one output a row; of a depthwise convolution that is one a group.
        is_whole: whether the layer is all of the node: nothing is added to what it makes.
    """
    largest = writer.largest.get(node.inputs[0])
    if largest is None or not _takes_bytes(writer.graph, node):
        return {}, []
    reach = np.abs(values.reshape(values.shape[0], -1)).max(axis=1)
    scales = _LARGEST_BYTE / np.where(reach > 0, reach, np.float32(1))
    weights = [scales.astype("<f4").tobytes(), _scale_bytes(largest)]
    made = node.outputs[0]
    readers = writer.readers[made]
    becomes_bytes = made in writer.largest and made not in writer.graph.output_names()
    if is_whole and becomes_bytes and readers and all(_reads_bytes(writer.graph, reader, made) for reader in readers):
        return {_KIND: 1 + _REQUANTIZED}, [*weights, _scale_bytes(writer.largest[made])]
    return {_KIND: 1}, weights


def _takes_bytes(graph: Graph, node: Node) -> bool:
    """Groups of several channels have one scale each there, which does not do for all of their outputs."""
    if node.op_type != "FusedConv":
        return node.op_type == "FusedGemm"
    return int(number(node, "group")) in (1, graph.shape(node.inputs[1])[0])


def _reads_bytes(graph: Graph, reader: Node, name: str) -> bool:
    """Tell whether a convolution takes bytes that another made; what is fully connected makes them itself."""
    reads = reader.inputs[0] == name and name not in reader.inputs[1:]
    return reads and reader.op_type == "FusedConv" and _takes_bytes(graph, reader)


def _scale_bytes(largest: float) -> bytes:
    return cast("bytes", np.float32(_LARGEST_BYTE / largest if largest > 0 else 1).astype("<f4").tobytes())
