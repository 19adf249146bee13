"""Operators on quantized tensors become operators on floats between DequantizeLinear and QuantizeLinear.

So everything behind sees one form of a quantized network.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from powerlab.engine.ir.graph import Graph, Node
from powerlab.engine.ops.quantized import MICROSOFT, QUANTIZED, Operand, Quantized
from powerlab.engine.ops.view import FLOAT32, NodeView
from powerlab.engine.passes.expand.expansion import Expansion
from powerlab.engine.passes.rewriting import Rewriter, rewrite_nodes

_FLOAT, _INT32 = 1, 6
"""ONNX's numbers of these types."""


def _quantized(view: NodeView, rewriter: Rewriter) -> Sequence[Node]:
    how = {**QUANTIZED, **MICROSOFT}[view.node.op_type]
    add = Expansion(view, rewriter)
    inputs = [_dequantized(view, add, operand) for operand in how.operands(view.node)]
    if how.bias is not None and view.has(how.bias):
        inputs.append(_bias(view, add, how))
    made = add(how.operator, *inputs, output="", **how.attributes(view))
    return _result(view, add, how, made)


def _result(view: NodeView, add: Expansion, how: Quantized, made: str) -> Sequence[Node]:
    """Return all nodes: quantize what was made, or cast it to int32, or leave it."""
    node = view.node
    if how.made is not None and view.has(how.made[0]):
        scale, zero_point = how.made
        shared = [node.inputs[zero_point]] if view.has(zero_point) else []
        return add.ending(add("QuantizeLinear", made, node.inputs[scale], *shared))
    if how.floats:
        return add.ending(_with_bias(view, add, made) if node.op_type == "MatMulIntegerToFloat" else made)
    return add.ending(add("Cast", made, to=_INT32))


def _with_bias(view: NodeView, add: Expansion, made: str) -> str:
    return add("Add", made, view.node.inputs[6]) if view.has(6) else made


def _dequantized(view: NodeView, add: Expansion, operand: Operand) -> str:
    """Return the floats that an operand expresses; integers that have no scale express themselves."""
    node = view.node
    value = node.inputs[operand.value]
    scale = node.inputs[operand.scale] if operand.scale is not None else add.floats(1.0)
    zero_point = node.input(operand.zero_point) if operand.zero_point is not None else ""
    rank = len(view.shape(operand.value))
    axis = operand.axis % rank if rank else 0
    shapes = [add.shape(one) for one in (scale, zero_point) if one]
    several = [shape for shape in shapes if shape not in ((), (1,))]
    if not several:
        scale, zero_point = (_one_number(add, one) for one in (scale, zero_point))
        return add("DequantizeLinear", value, scale, *filter(None, [zero_point]))
    if all(len(shape) == 1 for shape in several):
        count = several[0][0]
        scale = _repeated(add, scale, count)
        zero_point = _repeated(add, zero_point, count) if zero_point else ""
        return add("DequantizeLinear", value, scale, *filter(None, [zero_point]), axis=axis)
    # One for each matrix of a stack: there is no form of DequantizeLinear for that.
    floats = add("Cast", add("Cast", value, to=_INT32), to=_FLOAT)
    if zero_point:
        floats = add("Sub", floats, add("Cast", _stacked(add, zero_point, rank, axis), to=_FLOAT))
    return add("Mul", floats, _stacked(add, scale, rank, axis))


def _one_number(add: Expansion, tensor: str) -> str:
    return tensor if not tensor or add.shape(tensor) == () else add.reshape(tensor, ())


def _repeated(add: Expansion, tensor: str, count: int) -> str:
    """Return one number as ``count`` of them."""
    if add.shape(tensor) == (count,):
        return tensor
    return add("Expand", tensor, add.ints([count]))


def _stacked(add: Expansion, tensor: str, rank: int, axis: int) -> str:
    """Return scales or zero points so that they broadcast to a stack of matrices."""
    shape = add.shape(tensor)
    if len(shape) != 1:
        return tensor
    return add.reshape(tensor, (-1 if at == axis else 1 for at in range(rank)))


def _bias(view: NodeView, add: Expansion, how: Quantized) -> str:
    """Return the floats that are added; integers are in steps of the product of the operands' scales."""
    node, place = view.node, how.bias
    assert place is not None  # noqa: S101  asked for only where there is one
    if view.dtype(place) == FLOAT32:
        return node.inputs[place]
    scales = [node.inputs[one.scale] for one in how.operands(node) if one.scale is not None]
    step = add("Mul", *(_one_number(add, one) if add.shape(one) in ((), (1,)) else one for one in scales))
    if not add.shape(step):
        return add("DequantizeLinear", node.inputs[place], step)
    return add("DequantizeLinear", node.inputs[place], step, axis=len(view.shape(place)) - 1)


def _pool_of_bytes(view: NodeView, rewriter: Rewriter) -> Sequence[Node] | None:
    """Pool the floats that bytes express: the largest is the same."""
    node = view.node
    if view.dtype(0) == FLOAT32:
        return None
    if len(node.outputs) > 1 and node.outputs[1]:
        view.fail("pools bytes and tells places; the engine does one of both")
    add = Expansion(view, rewriter)
    parameters = _expressed_by(rewriter, node.inputs[0]) or (
        add.floats(1.0),
        rewriter.constant(f"{node.outputs[0]}.zero", np.zeros((), view.dtype(0))),
    )
    floats = add("DequantizeLinear", node.inputs[0], *parameters)
    made = add("MaxPool", floats, output="", **node.attributes)
    return add.ending(add("QuantizeLinear", made, *parameters))


def _expressed_by(rewriter: Rewriter, tensor: str) -> tuple[str, ...]:
    """Return the scale and the zero point with which bytes were made; nothing where they are not told."""
    maker = rewriter.producer(tensor)
    known = {**QUANTIZED, **MICROSOFT}
    while maker is not None and maker.op_type in ("MaxPool", "Reshape"):
        maker = rewriter.producer(maker.inputs[0])
    if maker is None or maker.op_type not in (*known, "QuantizeLinear"):
        return ()
    places = (1, 2) if maker.op_type == "QuantizeLinear" else known[maker.op_type].made
    parameters = tuple(filter(None, map(maker.input, places or ())))
    return parameters if all(rewriter.shape(name) in ((), (1,)) for name in parameters) else ()


def _dynamic(view: NodeView, rewriter: Rewriter) -> Sequence[Node]:
    """Choose the scale by the values: the range from the smallest to the largest, with 0, in 255 steps."""
    node, add = view.node, Expansion(view, rewriter)
    quantized, scale, zero_point = _dynamically(add, node.inputs[0])
    for made, wanted in zip((scale, zero_point), node.outputs[1:], strict=False):
        if wanted:
            add("Identity", made, output=wanted)
    return add.ending(add("Identity", quantized))


def _dynamically(add: Expansion, source: str) -> tuple[str, str, str]:
    """Return a tensor in uint8, its scale and its zero point."""
    zero, steps = add.floats(0.0), add.floats(255.0)
    low = add("Min", add("ReduceMin", source, keepdims=0), zero)
    high = add("Max", add("ReduceMax", source, keepdims=0), zero)
    width = add("Div", add("Sub", high, low), steps)
    scale = add("Where", add("Equal", width, zero), add.floats(1.0), width)  # nothing but zeros
    zero_point = add("Cast", add("Round", add("Clip", add("Div", add("Sub", zero, low), scale), zero, steps)), to=2)
    return add("QuantizeLinear", source, scale, zero_point), scale, zero_point


def _dynamic_product(view: NodeView, rewriter: Rewriter) -> Sequence[Node]:
    node, add = view.node, Expansion(view, rewriter)
    left = add("DequantizeLinear", *_dynamically(add, node.inputs[0]))
    right = _dequantized(view, add, Operand(1, 2, 3, -1))
    made = add("MatMul", left, right)
    return add.ending(add("Add", made, node.inputs[4]) if node.input(4) else made)


def expand_quantized(graph: Graph) -> Graph:
    """Return the graph with QuantizeLinear and DequantizeLinear as its only operators of quantized tensors."""
    rules = {
        **dict.fromkeys({**QUANTIZED, **MICROSOFT}, _quantized),
        "DynamicQuantizeLinear": _dynamic,
        "DynamicQuantizeMatMul": _dynamic_product,
        "MaxPool": _pool_of_bytes,
    }
    return rewrite_nodes(graph, rules)
