"""Quantization: QuantizeLinear and DequantizeLinear around the layers that compute with integers.

Activations are unsigned, of 8 bits, with one scale a tensor and a zero point; weights are signed, of 8 bits, with one
scale an output channel and the zero point 0; biases are of 32 bits, in steps of the product of both scales.

Sources: Jacob et al., https://arxiv.org/abs/1712.05877; M. Nagel et al., "Data-Free Quantization Through Weight
Equalization and Bias Correction", https://arxiv.org/abs/1906.04721, section 4.2, for the correction of biases.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from powerlab.domain.errors import PowerlabError
from powerlab.engine.codegen.quantized.pack import largest_sums
from powerlab.engine.ir.constants import value_of
from powerlab.engine.ir.graph import Array, Graph, Node, quoted
from powerlab.engine.passes.rewriting import Rewriter
from powerlab.engine.passes.simplify.dead_nodes import drop_dead
from powerlab.engine.quantization.calibrate import Calibration
from powerlab.engine.quantization.layers import Layer, is_attention, layers_of, moves, quantized_tensors

_STEPS = 255
_LARGEST_WEIGHT = 127
"""-128 is left out, so that weights and their negatives have the same steps."""

_LARGEST_NARROW_SUM = {2: 127, 4: 126}
"""Of so many weights of one sign: rounding may make it 128, and 255 times that is a number of 16 bits with a sign."""

_LARGEST_BIAS = 2**31 - 1
_UINT8, _INT8 = np.dtype(np.uint8), np.dtype(np.int8)


class Options(Struct, frozen=True, kw_only=True):
    """How a network is quantized.

    Attributes:
        floats: names of the layers that stay in float32.
        correct_biases: whether biases make up for what rounded weights shift on average.
        narrow_weights: how many products of convolutions fit 16 bits, at least, 2 or 4, of other layers 2: transformers
            lose more; 1: any weights; see :func:`quantized_weights`.
        attention: whether products of two computed matrices are quantized, too.
    """

    floats: frozenset[str] = frozenset()
    correct_biases: bool = True
    narrow_weights: int = 1
    attention: bool = False


class Quantized(Struct, frozen=True):
    """A quantized network.

    Attributes:
        graph: the network.
        layers: those that compute with integers.
        seen_as: their outputs -> what these are called in ``graph``.
    """

    graph: Graph
    layers: tuple[Layer, ...]
    seen_as: Mapping[str, str]


@dataclass(slots=True)
class _State:
    """What there is of the new graph, while nodes are looked at in order."""

    graph: Graph
    rewriter: Rewriter
    calibration: Calibration
    options: Options
    sources: Mapping[str, tuple[str, ...]]
    signed: frozenset[str]
    nodes: list[Node] = field(default_factory=list)
    read_as: dict[str, str] = field(default_factory=dict)
    scales: dict[str, np.float32] = field(default_factory=dict)


def scale_of(low: float, high: float) -> tuple[np.float32, np.uint8]:
    """Return scale and zero point of unsigned 8-bit integers that span a range and 0, which they have exactly."""
    low, high = min(low, 0.0), max(high, 0.0)
    if high == low:
        return np.float32(1), np.uint8(0)
    scale = np.float32((high - low) / _STEPS)
    scale = max(scale, np.finfo(np.float32).tiny)
    return np.float32(scale), np.uint8(np.clip(np.rint(-low / scale), 0, _STEPS))


def signed_scale_of(low: float, high: float) -> tuple[np.float32, np.uint8]:
    """Return scale and zero point of a range on both sides of 0, which is in the middle of the integers.

    So a product need not know the sums of its left side's rows.
    """
    largest = max(-low, high, 0.0)
    scale = max(np.float32(largest / _LARGEST_WEIGHT), np.finfo(np.float32).tiny) if largest else np.float32(1)
    return np.float32(scale), np.uint8(128)


def quantize_graph(graph: Graph, calibration: Calibration, options: Options | None = None) -> Quantized:
    """Return a float network as a quantized one.

    Args:
        graph: from :func:`powerlab.engine.quantization.prepare.prepared_for_quantization`.
        calibration: of this network.
        options: how; None: as usual.

    Raises:
        PowerlabError: the calibration is that of another network.
    """
    options = options or Options()
    found = layers_of(graph, attention=options.attention)
    layers = tuple(layer for layer in found if layer.name not in options.floats)
    sources = quantized_tensors(graph, layers)
    missing = _without_range(sources, calibration)
    if missing:
        raise PowerlabError(
            f"the calibration does not know the tensor {quoted(missing[0])}; calibrate this model anew."
        )
    signed = frozenset(layer.node.inputs[1] for layer in layers if is_attention(graph, layer.node))
    state = _State(graph, Rewriter(graph), calibration, options, sources, signed)
    by_node = {layer.name: layer for layer in layers}
    outputs = graph.output_names()
    # What else is quantized was floats, which whoever computes with floats reads as they were.
    in_integers = {layer.output for layer in layers} | {node.outputs[0] for node in graph.nodes if moves(node)}
    for info in graph.inputs:
        if info.name in sources:
            _quantize(state, info.name, info.name, state.rewriter.tensor(f"{info.name}.dequantized", info.shape))
    for node in graph.nodes:
        layer = by_node.get(node.outputs[0])
        of_integers = layer is not None or moves(node)
        inputs = tuple(
            state.read_as.get(name, name) if of_integers or name in in_integers else name for name in node.inputs
        )
        if layer is not None and layer.weight(graph):
            inputs = _with_weights(state, layer, inputs)
        exact = {name: _exact(state, name) for name in node.outputs if name in sources}
        state.nodes.append(replace(node, inputs=inputs, outputs=tuple(exact.get(name, name) for name in node.outputs)))
        for name, before in exact.items():
            shape = graph.shape(name)
            seen = name if name in outputs else state.rewriter.tensor(f"{name}.dequantized", shape)
            _quantize(state, name, before, seen)
    quantized = drop_dead(state.rewriter.finish(state.nodes))
    seen_as = {layer.output: state.read_as.get(layer.output, layer.output) for layer in layers}
    return Quantized(quantized, layers, seen_as)


def is_calibrated(graph: Graph, calibration: Calibration) -> bool:
    """Tell whether a calibration knows all tensors of a network that its layers make quantized."""
    return not _without_range(quantized_tensors(graph, layers_of(graph)), calibration)


def _without_range(sources: Mapping[str, tuple[str, ...]], calibration: Calibration) -> list[str]:
    return sorted({name for names in sources.values() for name in names} - calibration.ranges.keys())


def _exact(state: _State, tensor: str) -> str:
    """Return what a tensor is called before it is rounded: an output of the graph keeps its name for what is seen."""
    if tensor not in state.graph.output_names():
        return tensor
    return state.rewriter.tensor(f"{tensor}.exact", state.graph.shape(tensor))


def _quantize(state: _State, tensor: str, exact: str, dequantized: str) -> None:
    """Add the nodes that round a tensor to its integers and back; those after them read it so."""
    lows, highs = zip(*(state.calibration.ranges[name] for name in state.sources[tensor]), strict=True)
    rounded = signed_scale_of if tensor in state.signed else scale_of
    scale, zero_point = rounded(min(lows), max(highs))
    rewriter = state.rewriter
    whole = rewriter.tensor(f"{tensor}.quantized", state.graph.shape(tensor), _UINT8)
    parameters = (
        rewriter.constant(f"{tensor}.scale", np.asarray(scale)),
        rewriter.constant(f"{tensor}.zero_point", np.asarray(zero_point)),
    )
    state.nodes.append(Node("QuantizeLinear", whole, (exact, *parameters), (whole,)))
    state.nodes.append(Node("DequantizeLinear", f"{whole}.back", (whole, *parameters), (dequantized,)))
    state.read_as[tensor], state.scales[tensor] = dequantized, scale


def quantized_weights(weights: Array, axis: int, *, narrow: int = 1) -> tuple[Array, Array]:
    """Return weights in int8 and their scales, one an index of ``axis``.

    Narrow ones are at most so large that the sum of 2 or 4 products fits 16 bits, whatever bytes they are multiplied
    by: see :func:`powerlab.engine.codegen.quantized.pack.largest_sums`. That takes a bit or two at most, and less where
    large weights are seldom neighbours. Processors without dot products of bytes then multiply more of them at a time.
    """
    others = tuple(at for at in range(weights.ndim) if at != axis)
    largest = np.abs(weights).max(axis=others, keepdims=True).astype(np.float64)
    if narrow > 1:
        sums = largest_sums(np.moveaxis(weights, axis, 0), narrow).astype(np.float64).reshape(largest.shape)
        largest = np.maximum(largest, sums * (_LARGEST_WEIGHT / _LARGEST_NARROW_SUM[narrow]))
    scale = np.where(largest > 0, largest / _LARGEST_WEIGHT, 1.0).astype(np.float32)
    scale = np.maximum(scale, np.finfo(np.float32).tiny)
    whole = np.clip(np.rint(weights / scale), -_LARGEST_WEIGHT, _LARGEST_WEIGHT).astype(np.int8)
    return whole, scale.reshape(-1)


def channel_axis(node: Node) -> int:
    """Return the axis of a layer's weights that counts its outputs."""
    if node.op_type == "Gemm":
        return 0 if node.attributes.get("transB", 0) else 1
    return 0 if node.op_type == "Conv" else 1


def _with_weights(state: _State, layer: Layer, inputs: tuple[str, ...]) -> tuple[str, ...]:
    """Return a layer's inputs with weights, and a bias where it has one, that are dequantized from integers."""
    node, rewriter = layer.node, state.rewriter
    weights, axis = value_of(state.graph.kept_constants[node.inputs[1]]), channel_axis(node)
    narrow = state.options.narrow_weights if node.op_type == "Conv" else min(state.options.narrow_weights, 2)
    whole, scale = quantized_weights(weights, axis, narrow=narrow)
    name = f"{layer.name}.weight"
    parameters = (rewriter.constant(f"{name}.quantized", whole), rewriter.constant(f"{name}.scale", scale))
    dequantized = rewriter.tensor(name, weights.shape)
    state.nodes.append(Node("DequantizeLinear", name, parameters, (dequantized,), {"axis": axis}))
    if node.op_type == "MatMul":
        return (inputs[0], dequantized)
    shape = [1] * weights.ndim
    shape[axis] = -1
    error = whole.astype(np.float32) * scale.reshape(shape) - weights
    bias = _bias(state, layer, error, axis)
    return (inputs[0], dequantized, *_quantized_bias(state, layer, bias, scale))


def _bias(state: _State, layer: Layer, error: Array, axis: int) -> Array | None:
    """Return a layer's bias, less what the errors of its weights add on average; None where it has none."""
    node = layer.node
    bias = None
    if node.input(2):
        if node.inputs[2] not in state.graph.kept_constants:
            return None
        bias = state.graph.constants[node.inputs[2]].astype(np.float64).reshape(-1)
    means = state.calibration.means.get(layer.inputs[0])
    if not state.options.correct_biases or means is None:
        return bias
    outputs = error.shape[axis]
    by_input = np.moveaxis(error, axis, 0).reshape(outputs, error.size // outputs // _taps(node, error), -1).sum(axis=2)
    groups = int(str(node.attributes.get("group", 1)))
    if len(means) != groups * by_input.shape[1]:
        raise PowerlabError(
            f"the calibration knows {len(means)} channels of the tensor {quoted(layer.inputs[0])}, which has "
            f"{groups * by_input.shape[1]}; calibrate this model anew."
        )
    added = by_input.reshape(groups, outputs // groups, -1) * np.reshape(means, (groups, 1, -1))
    before: Array = np.zeros(outputs) if bias is None else np.broadcast_to(bias, (outputs,))
    return np.asarray(before - added.sum(axis=2).reshape(outputs))


def _taps(node: Node, weights: Array) -> int:
    """Return how many weights multiply the same input channel."""
    return int(np.prod(weights.shape[2:])) if node.op_type == "Conv" else 1


def _quantized_bias(state: _State, layer: Layer, bias: Array | None, scale: Array) -> tuple[str, ...]:
    """Return the input that adds a layer's bias, if any."""
    if bias is None:
        return layer.node.inputs[2:]
    rewriter, name = state.rewriter, f"{layer.name}.bias"
    step = (state.scales[layer.inputs[0]] * scale).astype(np.float32)
    steps = np.rint(bias / step.astype(np.float64))
    if not np.all(step > 0) or np.abs(steps).max(initial=0) > _LARGEST_BIAS:
        return (rewriter.constant(name, bias.astype(np.float32)),)  # a channel of tiny weights: steps too fine for it
    parameters = (
        rewriter.constant(f"{name}.quantized", steps.astype(np.int32)),
        rewriter.constant(f"{name}.scale", step),
    )
    made = rewriter.tensor(name, bias.shape)
    state.nodes.append(Node("DequantizeLinear", name, parameters, (made,), {"axis": 0}))
    return (made,)
