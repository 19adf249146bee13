"""Nodes on bytes as PyTorch computes them on the cores: with the kernels of oneDNN that it has for its compiler.

Layers add their residual and round once, behind the activation. All bytes are unsigned, and those of images lie with
their channels last. As sums are counted in steps of what a layer makes, oneDNN is told no scale but the multipliers of
the channels, unless a function of floats comes before the bytes (:mod:`.torch_post_ops`). ``onednn::qadd`` is left
alone: PyTorch 2.14.1 computes a quarter of the bytes with it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from powerlab.backends.torch_floats import (
    Operator,
    Rule,
    Tensor,
    average_pool,
    concat,
    padded,
    reshape,
    resize,
    torch_pads,
)
from powerlab.domain.errors import PowerlabError
from powerlab.engine.codegen.attributes import integers, number, number_or
from powerlab.engine.ir.graph import IMAGE_AXES, VOLUME_AXES, Graph, Node
from powerlab.engine.ops.activation import NO_SLOPE, slope_of

_LARGEST_BYTE = 255
_MATRIX_AXES = 2
_OPERATORS = ("qlinear_pointwise", "qconv2d_pointwise", "qconv3d_pointwise", "qbatch_norm2d")


def check_operators(torch: Any) -> None:
    """Refuse a PyTorch that lacks what computes with bytes.

    Raises:
        PowerlabError: it was built without oneDNN, or is of a version without these operators.
    """
    named = [(torch.ops.onednn, name) for name in _OPERATORS] + [(torch, "quantize_per_tensor")]
    if not torch.backends.mkldnn.is_available() or not all(hasattr(module, name) for module, name in named):
        raise PowerlabError(
            f"PyTorch {torch.__version__} lacks what powerlab computes bytes with: {', '.join(_OPERATORS)} of oneDNN, "
            "and quantize_per_tensor; install another version or build, or use another engine for int8."
        )


def _quantizing(torch: Any, step: float, zero: int) -> Callable[[Tensor], Tensor]:
    """Return a function that makes bytes of floats.

    PyTorch is to lose ``quantize_per_tensor``, but has nothing else that rounds, clamps and narrows at once: operators
    one after the other take three to six times as long. Its bytes are taken as they lie in memory, because copying them
    (``int_repr``) takes longer than making them.
    """
    quantize, empty = torch.quantize_per_tensor, torch.empty
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        quantize(torch.zeros(1), step, zero, torch.quint8)  # the first call warns of that, later ones do not

    def compute(x: Tensor) -> Tensor:
        made = quantize(x, step, zero, torch.quint8)
        return empty(0, dtype=torch.uint8).set_(made.untyped_storage(), 0, made.shape, made.stride())

    return compute


def _dequantizing(torch: Any, step: float, zero: int) -> Callable[[Tensor], Tensor]:
    """Return a function that makes floats of bytes, which takes half of the time where PyTorch is told their scale."""
    with_scale = torch._make_per_tensor_quantized_tensor
    return lambda x: with_scale(x, step, zero).dequantize()


def _counting(torch: Any, node: Node, side: str) -> Callable[[Tensor], Tensor]:
    """Return a function that makes of an input's bytes what they stand for, in steps of what the node makes."""
    return _dequantizing(torch, number(node, f"{side}_ratio"), int(number(node, f"{side}_zero")))


def _rounding(torch: Any, node: Node) -> Callable[[Tensor], Tensor]:
    """Return a function that makes the node's bytes of floats that count steps."""
    quantize, bound = _quantizing(torch, 1.0, int(number(node, "zero"))), _bounding(node)
    return lambda x: bound(quantize(x))


def _bounding(node: Node) -> Callable[[Tensor], Tensor]:
    """Return a function that brings bytes within the node's bounds, in place."""
    low, high = _bounds(node)
    return _unchanged if (low, high) == (0, _LARGEST_BYTE) else lambda x: x.clamp_(low, high)


def _unchanged(x: Tensor) -> Tensor:
    return x


def _bounds(node: Node) -> tuple[int, int]:
    zero = number(node, "zero")
    low, high = (int(min(max(number(node, side) + zero, 0), _LARGEST_BYTE)) for side in ("low", "high"))
    return low, high


def _quantize(torch: Any, node: Node, _graph: Graph) -> Operator:
    return _quantizing(torch, number(node, "step"), int(number(node, "zero")))


def _dequantize(torch: Any, node: Node, _graph: Graph) -> Operator:
    return _dequantizing(torch, number(node, "step"), int(number(node, "zero")))


def _conv(torch: Any, node: Node, graph: Graph) -> Operator:
    """Return a convolution of bytes, or of rows of them that are fully connected.

    oneDNN knows no slope here, and of images alone it adds bytes to bytes: other layers round behind floats.
    """
    residual, slope, axes = node.input(4), slope_of(node), len(graph.shape(node.inputs[0]))
    in_floats = bool(node.attributes.get("floats"))
    if not in_floats and slope == NO_SLOPE and (axes == IMAGE_AXES or not residual):
        return _in_bytes(torch, node, graph)
    convolve = _convolving(torch, node, graph, torch.float32)
    add = _counting(torch, node, "y") if residual else None
    finish = _unchanged if in_floats else _rounding(torch, node)

    def compute(x: Tensor, *residuals: Tensor) -> Tensor:
        y = convolve(x)
        if slope != NO_SLOPE:
            torch.nn.functional.leaky_relu_(y, slope)
        return finish(y if add is None else y.add_(add(*residuals)))

    return compute


def _in_bytes(torch: Any, node: Node, graph: Graph) -> Operator:
    """Return a layer that makes bytes; oneDNN writes them over those of the residual, or of a copy of it."""
    is_relu = number(node, "low") == 0 and _bounds(node)[1] == _LARGEST_BYTE
    fuses = is_relu and len(graph.shape(node.inputs[0])) != VOLUME_AXES
    function = "relu" if fuses else str(node.attributes.get("function", "none"))
    convolve = _convolving(torch, node, graph, torch.uint8, function)
    bound = _unchanged if fuses else _bounding(node)
    if not node.input(4) or _may_overwrite(node, graph):
        return lambda *tensors: bound(convolve(*tensors))
    return lambda x, residual: bound(convolve(x, residual.clone()))


def _may_overwrite(node: Node, graph: Graph) -> bool:
    """Tell whether nothing reads the bytes of a residual but what has done so before the node."""
    residual = node.inputs[4]
    readers, made = graph.consumers()[residual], graph.producers()[residual]
    has_views = any(other.op_type == "QuantView" for other in (made, *readers))
    return readers[-1] is node and node.inputs[0] != residual and not has_views


def _convolving(torch: Any, node: Node, graph: Graph, kind: Any, function: str = "none") -> Operator:
    """Return what computes a layer and oneDNN's ``function`` of it, with the weights as oneDNN wants them.

    It takes the input, and what is added where anything is, which is overwritten. oneDNN is told no zero point of the
    input: making up for it in every run may take four times as long as the layer. What sums begin with makes up for it
    already, and images are padded before with the byte that stands for 0, where that is another than 0.
    """
    kernels, begin, multipliers = (graph.constants[name] for name in node.inputs[1:4])
    biases = (begin * multipliers).astype(np.float32)
    weights, bias, factors = (torch.from_numpy(np.array(x)) for x in (kernels, biases, multipliers))
    shape, zero = list(graph.shape(node.inputs[0])), int(number(node, "zero")) if kind is torch.uint8 else 0
    ops, zeros, behind = torch.ops.onednn, torch.zeros_like(factors, dtype=torch.int64), (function, (), "none")
    if len(shape) == _MATRIX_AXES:
        step = number_or(node, "step", 1.0)
        packed, linear = ops.qlinear_prepack(weights.reshape(weights.shape[:2]), shape), ops.qlinear_pointwise.default
        return lambda x: linear(x, 1.0, 0, packed, factors, zeros, bias, step, zero, kind, *behind)
    pads, strides, dilations = (integers(node, name) for name in ("pads", "strides", "dilations"))
    axes, x_zero = len(strides), int(number(node, "x_zero"))
    pads_itself = pads[:axes] == pads[axes:] and (x_zero == 0 or not any(pads))
    pad = _unchanged if pads_itself else padded(torch, pads, x_zero)
    windows = (strides, pads[:axes] if pads_itself else (0,) * axes, dilations, int(number(node, "group")))
    packed = ops.qconv_prepack(weights, factors, 1.0, 0, *windows, list(pad(torch.empty(shape)).shape))
    given, made = (1.0, 0, packed, factors, zeros), (1.0, zero, kind)
    if node.input(4) and kind is torch.uint8:
        add, added = ops.qconv2d_pointwise.binary, (number(node, "y_ratio"), int(number(node, "y_zero")), "sum", 1.0)
        return lambda x, y: add(pad(x), *given, y, bias, *windows, *made, *added, *behind)
    convolve = (ops.qconv3d_pointwise if len(shape) == VOLUME_AXES else ops.qconv2d_pointwise).default
    return lambda x: convolve(pad(x), *given, bias, *windows, *made, *behind)


def _add(torch: Any, node: Node, _graph: Graph) -> Operator:
    """Add bytes of two scales, or give those of one another scale."""
    first, *others = (_counting(torch, node, side) for side, _ in zip("xy", node.inputs, strict=False))
    finish = _rounding(torch, node)
    return lambda x, *more: finish(first(x) if not others else first(x).add_(others[0](*more)))


def _scale(torch: Any, node: Node, graph: Graph) -> Operator:
    """Multiply each channel by a number and add one, which oneDNN's batch norm does."""
    factors, shifts = (torch.from_numpy(np.array(graph.constants[name])) for name in node.inputs[1:])
    norm, zero, bound = torch.ops.onednn.qbatch_norm2d.default, int(number(node, "zero")), _bounding(node)
    mean, variance = torch.zeros_like(factors), torch.ones_like(factors)
    numbers = (factors, shifts, mean, variance, 0.0, 1.0, zero, torch.uint8)
    return lambda x: bound(norm(x, 1.0, 0, *numbers))


def _pool(torch: Any, node: Node, graph: Graph) -> Operator:
    if node.attributes["kind"] == "max":
        kernel, strides, pads = (list(integers(node, name)) for name in ("kernel", "strides", "pads"))
        pool, pad = torch.ops.quantized.max_pool2d.default, padded(torch, tuple(pads), 0)
        if torch_pads(tuple(kernel), tuple(pads)):
            return lambda x: pool(x, kernel, strides, pads[:2], [1, 1], False)
        return lambda x: pool(pad(x), kernel, strides, [0, 0], [1, 1], False)
    finish = _rounding(torch, node)
    if node.attributes["kind"] == "global_average":
        zero, ratio = number(node, "x_zero"), number(node, "x_ratio")
        return lambda x: finish(torch.mean(x, (2, 3), keepdim=True, dtype=torch.float32).sub_(zero).mul_(ratio))
    average, count = average_pool(torch, node, graph), _counting(torch, node, "x")
    return lambda x: finish(average(count(x)))


BYTES: dict[str, Rule] = {
    "Dequantize": _dequantize,
    "QuantAdd": _add,
    "QuantConcat": concat,
    "QuantConv": _conv,
    "QuantPool": _pool,
    "QuantResize": resize,
    "QuantScale": _scale,
    "QuantView": reshape,
    "QuantVolumeConv": _conv,
    "Quantize": _quantize,
}
"""Operator → rule; what a rule gives takes no constants, which it has packed."""
