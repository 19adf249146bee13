"""Operators of powerlab's optimised graph on floats, as PyTorch's."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any, cast

from powerlab.domain.errors import PowerlabError
from powerlab.engine.codegen.attributes import integers, number
from powerlab.engine.ir.graph import Graph, Node
from powerlab.engine.ops.activation import NO_CLAMP, NO_SLOPE, slope_of

Tensor = Any
Operator = Callable[..., Tensor]
Rule = Callable[[Any, Node, Graph], Operator]


def _activated(torch: Any, node: Node) -> Callable[[Tensor], Tensor]:
    """Return the node's slope and clamp as a function that may change its argument."""
    low, high = cast("tuple[float, float]", node.attributes["clamp"])
    slope = slope_of(node)
    if slope != NO_SLOPE:
        leaky = torch.nn.functional.leaky_relu_
        return lambda x: torch.clamp_(leaky(x, slope), low, high)
    if (low, high) == NO_CLAMP:
        return lambda x: x
    if (low, high) == (0.0, math.inf):
        return cast("Callable[[Tensor], Tensor]", torch.relu_)
    return lambda x: torch.clamp_(x, low, high)


def padded(torch: Any, pads: tuple[int, ...], fill: float) -> Callable[[Tensor], Tensor]:
    """Return a function that pads the last axes: (top, left, bottom, right) of images, and so on of volumes."""
    pairs = zip(reversed(pads[: len(pads) // 2]), reversed(pads[len(pads) // 2 :]), strict=True)
    sides = tuple(itertools.chain.from_iterable(pairs))
    return lambda x: torch.nn.functional.pad(x, sides, value=fill)


def _conv(torch: Any, node: Node, _graph: Graph) -> Operator:
    top, left, bottom, right = pads = integers(node, "pads")
    strides, dilations = integers(node, "strides"), integers(node, "dilations")
    group, activate = int(number(node, "group")), _activated(torch, node)
    even, has_bias = (top, left) == (bottom, right), bool(node.input(2))
    pad, inner = padded(torch, pads, 0.0), (top, left) if even else (0, 0)

    def compute(x: Tensor, weight: Tensor, *more: Tensor) -> Tensor:
        bias, residual = (more[0] if has_bias else None), more[has_bias:]
        y = torch.conv2d(x if even else pad(x), weight, bias, strides, inner, dilations, group)
        return activate(y.add_(residual[0]) if residual else y)

    return compute


def _elementwise(torch: Any, node: Node, _graph: Graph) -> Operator:
    """Return a function of floats that broadcast.

    Raises:
        PowerlabError: it is none of those that are translated.
    """
    stem, _, kinds = str(node.attributes["kernel"]).partition("_strided_")
    functions = {
        "add": torch.add,
        "div": torch.div,
        "max": torch.maximum,
        "min": torch.minimum,
        "mul": torch.mul,
        "pow": torch.pow,
        "sub": torch.sub,
    }
    if stem not in functions or kinds != "f32":
        raise PowerlabError(f"{node} computes {stem!r} of {kinds}, which is not translated for torch yet.")
    return cast("Operator", functions[stem])


def _gather(_torch: Any, node: Node, graph: Graph) -> Operator:
    """Return what picks one place that the model knows.

    Raises:
        PowerlabError: a run gives the places, or there are several.
    """
    places = graph.constants.get(node.inputs[1])
    if places is None or places.shape:
        raise PowerlabError(f"{node} picks other places than one that the model knows, which torch is not told yet.")
    axis, place = int(number(node, "axis")), int(places)
    return lambda x, _places: x.select(axis, place)


def _gemm(torch: Any, node: Node, _graph: Graph) -> Operator:
    activate, linear = _activated(torch, node), torch.nn.functional.linear
    return lambda x, weight, bias=None: activate(linear(x, weight, bias))


def _add(torch: Any, node: Node, _graph: Graph) -> Operator:
    activate = _activated(torch, node)
    return lambda x, y: activate(torch.add(x, y))


def _attention(torch: Any, node: Node, _graph: Graph) -> Operator:
    alpha, orders = number(node, "alpha"), [integers(node, side) for side in ("queries", "keys", "values")]
    attend = torch.nn.functional.scaled_dot_product_attention

    def compute(*sides: Tensor) -> Tensor:
        return attend(*(x.permute(order) if order else x for x, order in zip(sides, orders, strict=True)), scale=alpha)

    return compute


def _clamp(torch: Any, node: Node, _graph: Graph) -> Operator:
    activate = _activated(torch, node)
    return lambda x: activate(x.clone())


def _multiply(torch: Any, node: Node, _graph: Graph) -> Operator:
    activate = _activated(torch, node)
    return lambda x, y: activate(torch.mul(x, y))


def _function(torch: Any, node: Node, _graph: Graph) -> Operator:
    """Return a function of one number that torch has under a name of its own."""
    functional = torch.nn.functional
    named = {
        "Erf": torch.erf,
        "Exp": torch.exp,
        "Gelu": functional.gelu,
        "HardSwish": functional.hardswish,
        "Sigmoid": torch.sigmoid,
        "Silu": functional.silu,
        "Tanh": torch.tanh,
    }
    return cast("Operator", named[node.op_type])


def _elu(torch: Any, node: Node, _graph: Graph) -> Operator:
    alpha, elu = number(node, "alpha"), torch.nn.functional.elu
    return lambda x: elu(x, alpha)


def _hard_sigmoid(torch: Any, node: Node, _graph: Graph) -> Operator:
    alpha, beta = number(node, "alpha"), number(node, "beta")
    return lambda x: torch.clamp_(x * alpha + beta, 0.0, 1.0)


def _scale_shift(torch: Any, node: Node, graph: Graph) -> Operator:
    activate, axes = _activated(torch, node), (-1, *(1,) * (len(graph.shape(node.outputs[0])) - 2))
    return lambda x, scale, shift: activate(torch.addcmul(shift.view(axes), x, scale.view(axes)))


def _max_pool(torch: Any, node: Node, _graph: Graph) -> Operator:
    kernel, strides, pads = (integers(node, name) for name in ("kernel", "strides", "pads"))
    pool, pad = torch.nn.functional.max_pool2d, padded(torch, pads, -math.inf)
    if torch_pads(kernel, pads):
        return lambda x: pool(x, kernel, strides, pads[:2])
    return lambda x: pool(pad(x), kernel, strides)


def average_pool(torch: Any, node: Node, graph: Graph) -> Operator:
    """Return a pool that averages windows of floats."""
    kernel, strides, pads = (integers(node, name) for name in ("kernel", "strides", "pads"))
    counts = bool(node.attributes["count_include_pad"])
    pool, pad = torch.nn.functional.avg_pool2d, padded(torch, pads, 0.0)
    if torch_pads(kernel, pads):
        return lambda x: pool(x, kernel, strides, pads[:2], count_include_pad=counts)
    if counts:
        return lambda x: pool(pad(x), kernel, strides)
    share = pool(pad(torch.ones((1, 1, *graph.shape(node.inputs[0])[2:]))), kernel, strides)
    return lambda x: pool(pad(x), kernel, strides) / share.to(x.dtype)


def torch_pads(kernel: tuple[int, ...], pads: tuple[int, ...]) -> bool:
    """Tell whether a pool of torch pads like this: alike on both sides, and by half a window at most."""
    return pads[:2] == pads[2:] and all(2 * pad <= size for pad, size in zip(pads[:2], kernel, strict=True))


def _global_average_pool(torch: Any, _node: Node, _graph: Graph) -> Operator:
    return lambda x: torch.mean(x, (2, 3), keepdim=True)


def _lrn(torch: Any, node: Node, _graph: Graph) -> Operator:
    """ONNX's window of an even size reaches further to later channels, torch's to earlier ones: hence padded here."""
    size, (alpha, beta, bias) = int(number(node, "size")), (number(node, name) for name in ("alpha", "beta", "bias"))
    before, functional = (size - 1) // 2, torch.nn.functional

    def compute(x: Tensor) -> Tensor:
        wide = x.to(torch.float32)  # torch averages nothing else on a processor
        squares = functional.pad((wide * wide).unsqueeze(1), (0, 0, 0, 0, before, size - 1 - before))
        mean = functional.avg_pool3d(squares, (size, 1, 1), stride=1).squeeze(1)
        return (wide / (mean * alpha + bias) ** beta).to(x.dtype)

    return compute


def resize(torch: Any, node: Node, _graph: Graph) -> Operator:
    """Return what repeats pixels, of floats or bytes."""
    factors, interpolate = tuple(map(float, integers(node, "factors"))), torch.nn.functional.interpolate
    return lambda x: interpolate(x, scale_factor=factors, mode="nearest")


def _product(torch: Any, node: Node, _graph: Graph) -> Operator:
    alpha, orders = number(node, "alpha"), [integers(node, side) for side in ("left", "right")]

    def compute(*sides: Tensor) -> Tensor:
        left, right = (x.permute(order) if order else x for x, order in zip(sides, orders, strict=True))
        made = torch.matmul(left, right)
        return made if alpha == 1 else made.mul_(alpha)

    return compute


def _row_norm(torch: Any, node: Node, graph: Graph) -> Operator:
    shape = graph.shape(node.outputs[0])[int(number(node, "axis")) :]
    epsilon, has_scale = number(node, "epsilon"), bool(node.input(1))
    if node.attributes["kernel"] == "rms_norm":
        return lambda x, scale=None: torch.nn.functional.rms_norm(x, shape, scale, epsilon)

    def compute(x: Tensor, *vectors: Tensor) -> Tensor:
        scale, shift = (*(() if has_scale else (None,)), *vectors, None, None)[:2]
        return torch.nn.functional.layer_norm(x, shape, scale, shift, epsilon)

    return compute


def _softmax(torch: Any, node: Node, _graph: Graph) -> Operator:
    axis = int(number(node, "axis"))
    return lambda x: torch.softmax(x, axis)


def concat(torch: Any, node: Node, _graph: Graph) -> Operator:
    """Return what joins floats or bytes."""
    axis = int(number(node, "axis"))
    return lambda *parts: torch.cat(parts, axis)


def _transpose(_torch: Any, node: Node, _graph: Graph) -> Operator:
    order = integers(node, "perm")
    return lambda x: x.permute(order)


def _lstm(torch: Any, node: Node, graph: Graph) -> Operator:
    """Torch has no LSTM backwards alone: it gets the steps in the opposite order.

    Weights are brought into its order of gates in the first run.
    """
    directions, _, hidden = graph.shape(node.inputs[2])
    has_bias, has_state = bool(node.inputs[3]), bool(node.inputs[4])
    backwards = node.attributes["direction"] == "reverse"
    weights: list[Tensor] = []

    def compute(x: Tensor, of_inputs: Tensor, of_states: Tensor, *more: Tensor) -> tuple[Tensor, ...]:
        if not weights:
            pairs = [of_inputs, of_states, *(more[0].chunk(2, dim=1) if has_bias else ())]
            weights.extend(gates_of_torch(torch, part[i]) for i in range(directions) for part in pairs)
        steps, batch, _ = x.shape
        zeros = x.new_zeros(directions, batch, hidden)
        state = more[has_bias:] if has_state else (zeros, zeros)
        x = x.flip(0) if backwards else x
        y, last, cells = torch.lstm(x, state, weights, has_bias, 1, 0.0, False, directions == 2, False)
        y = y.reshape(steps, batch, directions, hidden).transpose(1, 2)
        return y.flip(0) if backwards else y, last, cells

    return compute


def gates_of_torch(torch: Any, rows: Tensor) -> Tensor:
    """Return weights or biases with ONNX's gates (input, output, forget, cell) as input, forget, cell, output."""
    given, shown, kept, candidate = rows.chunk(4)
    return torch.cat((given, kept, candidate, shown)).contiguous()


def reshape(_torch: Any, node: Node, graph: Graph) -> Operator:
    """Return what sees floats or bytes in another shape; they may be the same in memory."""
    shape = graph.shape(node.outputs[0])
    return lambda x: x.reshape(shape)


FLOATS: dict[str, Rule] = {
    "Add": _add,
    "Attention": _attention,
    "AveragePool": average_pool,
    "Clamp": _clamp,
    "Concat": concat,
    "Elementwise": _elementwise,
    "Elu": _elu,
    "Erf": _function,
    "Exp": _function,
    "FusedConv": _conv,
    "FusedGemm": _gemm,
    "FusedLstm": _lstm,
    "Gather": _gather,
    "Gelu": _function,
    "GlobalAveragePool": _global_average_pool,
    "HardSigmoid": _hard_sigmoid,
    "HardSwish": _function,
    "LRN": _lrn,
    "MaxPool": _max_pool,
    "Multiply": _multiply,
    "Product": _product,
    "Reshape": reshape,
    "Resize": resize,
    "RowNorm": _row_norm,
    "ScaleShift": _scale_shift,
    "Sigmoid": _function,
    "Silu": _function,
    "Softmax": _softmax,
    "Tanh": _function,
    "Transpose": _transpose,
}
