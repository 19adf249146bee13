"""What the engine's fused forms do not take becomes Elementwise: one kernel a node, any shapes that broadcast.

An Elementwise node has the attributes ``kernel``, the kernel's family, and ``numbers``, which are those of the kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from powerlab.engine.ir.graph import Graph, Node
from powerlab.engine.ir.narrow_types import NarrowFloat, NarrowInteger
from powerlab.engine.ops.broadcasting import broadcast_shapes
from powerlab.engine.ops.casting import cast_dtype, narrow_target, saturates, to_half, whole_range
from powerlab.engine.ops.elementwise import ELEMENTWISE, Function
from powerlab.engine.ops.view import BOOL, FLOAT32, INT64, NodeView
from powerlab.engine.passes.legalize.views import view_node
from powerlab.engine.passes.rewriting import Rewriter, rewrite_nodes
from powerlab.engine.program.operand import element_of

_SIGNED, _UNSIGNED, _UNSIGNED_64 = 0, 1, 2
_BITS = 64


def wrapping(dtype: np.dtype[Any]) -> tuple[int, int]:
    """Return how a kernel brings integers back into their type: the bits they lack to 64, and their sign."""
    lacking = _BITS - 8 * dtype.itemsize
    if dtype.kind != "u":
        return (lacking, _SIGNED) if dtype.kind == "i" else (0, _SIGNED)
    return (lacking, _UNSIGNED) if lacking else (0, _UNSIGNED_64)


def each(
    name: str, kernel: str, inputs: Sequence[str], output: str, dtype: np.dtype[Any], *, more: Sequence[int] = (0, 0)
) -> Node:
    """Return an Elementwise node.

    Args:
        name: of the node.
        kernel: the kernel's family, types included.
        inputs: tensors that broadcast.
        output: what it makes.
        dtype: the type into which integers wrap.
        more: number[2] and number[3] of the kernel.
    """
    return Node("Elementwise", name, tuple(inputs), (output,), {"kernel": kernel, "numbers": (*wrapping(dtype), *more)})


def strided(stem: str, *dtypes: np.dtype[Any]) -> str:
    """Return the family of the kernel ``stem`` for operands of these types."""
    return "_".join((stem, "strided", *(element_of(dtype).suffix for dtype in dtypes)))


def elementwise(view: NodeView, rewriter: Rewriter) -> Sequence[Node]:
    """Return Elementwise nodes for a node whose operator is in the table; several for more than two inputs."""
    node, function = view.node, ELEMENTWISE[view.node.op_type]
    if function.most is None:
        return _chain(view, function, rewriter, node.outputs[0])
    stem = function.kernel if isinstance(function.kernel, str) else function.kernel(view)
    inputs = node.inputs[::-1] if function.swapped else node.inputs
    kernel = strided(stem, view.dtype(0))
    return [each(node.name, kernel, inputs, node.outputs[0], view.dtype(0), more=function.numbers(view))]


def _chain(view: NodeView, function: Function, rewriter: Rewriter, output: str) -> list[Node]:
    """Take the inputs one after the other."""
    node, dtype = view.node, view.dtype(0)
    if len(node.inputs) == 1:
        return [view_node(node.name, node.inputs[0], output)]
    assert isinstance(function.kernel, str)  # noqa: S101  those of any number of inputs have one
    kernel = strided(function.kernel, dtype)
    nodes: list[Node] = []
    left, shape = node.inputs[0], view.shape(0)
    for index, right in enumerate(node.inputs[1:], start=1):
        last = index == len(node.inputs) - 1
        shape = broadcast_shapes(view, (shape, view.shape(index)))
        made = output if last else rewriter.tensor(f"{output}.part", shape, dtype)
        nodes.append(each(node.name if last else f"{node.name}.part{index}", kernel, (left, right), made, dtype))
        left = made
    return nodes


def _mean(view: NodeView, rewriter: Rewriter) -> Sequence[Node]:
    node, output = view.node, view.node.outputs[0]
    if len(node.inputs) == 1:
        return [view_node(node.name, node.inputs[0], output)]
    total = rewriter.tensor(f"{output}.sum", broadcast_shapes(view, [view.shape(i) for i in range(len(view.infos))]))
    count = rewriter.constant(f"{output}.count", np.asarray(len(node.inputs), np.float32))
    return [
        *_chain(view, ELEMENTWISE["Sum"], rewriter, total),
        each(node.name, strided("div", FLOAT32), (total, count), output, FLOAT32),
    ]


def _where(view: NodeView, _rewriter: Rewriter) -> Sequence[Node]:
    node, dtype = view.node, view.dtype(1)
    return [each(node.name, strided("where", dtype), node.inputs, node.outputs[0], dtype)]


def _power(view: NodeView, rewriter: Rewriter) -> Sequence[Node]:
    """Raise as the base's type: an integer to a power of floats goes by way of floats."""
    node, output, base, exponent = view.node, view.node.outputs[0], view.dtype(0), view.dtype(1)
    if base.kind == "f" or exponent.kind != "f":
        kinds = (base,) if base.kind == exponent.kind or base.kind != "f" else (base, exponent)
        return [each(node.name, strided("pow", *kinds), node.inputs, output, base)]
    floats = rewriter.tensor(f"{output}.base", view.shape(0))
    power = rewriter.tensor(f"{output}.power", rewriter.graph.shape(output))
    return [
        cast(f"{node.name}.base", node.inputs[0], floats, base, FLOAT32),
        each(f"{node.name}.power", strided("pow", FLOAT32), (floats, node.inputs[1]), power, FLOAT32),
        cast(node.name, power, output, FLOAT32, base),
    ]


def cast(name: str, source: str, output: str, old: np.dtype[Any], new: np.dtype[Any]) -> Node:
    """Return the node that makes ``output`` of type ``new`` from ``source`` of another type, ``old``."""
    if new == BOOL:
        return each(name, strided("is_not_zero", old), (source,), output, new)
    limits = whole_range(new) if new.kind in "iu" else (0, 0)
    return each(name, strided("cast", old, new), (source,), output, new, more=limits)


def _cast_to_few_bits(view: NodeView, rewriter: Rewriter, kind: NarrowInteger) -> Sequence[Node]:
    """Cast to an integer type of fewer than 8 bits, which keeps the lowest."""
    node, source, nodes = view.node, view.node.inputs[0], []
    if view.dtype(0).kind == "f":
        source = rewriter.tensor(f"{node.outputs[0]}.whole", view.shape(0), INT64)
        nodes.append(cast(f"{node.name}.whole", node.inputs[0], source, FLOAT32, INT64))
    numbers = (_BITS - kind.bits, _SIGNED if kind.signed else _UNSIGNED, 0, 0)
    wrapped = {"kernel": strided("cast", INT64, INT64), "numbers": numbers}
    return [*nodes, Node("Elementwise", node.name, (source,), node.outputs, wrapped)]


def _cast_to_narrow(view: NodeView, rewriter: Rewriter, kind: NarrowFloat) -> Sequence[Node]:
    """Round to a float type that numpy lacks; the result goes on as float32."""
    node, source, nodes = view.node, view.node.inputs[0], []
    if view.dtype(0) != FLOAT32:
        source = rewriter.tensor(f"{node.outputs[0]}.floats", view.shape(0))
        nodes.append(cast(f"{node.name}.floats", node.inputs[0], source, view.dtype(0), FLOAT32))
    rounded = {"kernel": "narrow_strided_f32", "numbers": kind.rounding(saturates(view))}
    return [*nodes, Node("Elementwise", node.name, (source,), node.outputs, rounded)]


def _cast(view: NodeView, rewriter: Rewriter) -> Sequence[Node]:
    node, old, new = view.node, view.dtype(0), cast_dtype(view)
    narrow = narrow_target(view)
    if isinstance(narrow, NarrowInteger):
        return _cast_to_few_bits(view, rewriter, narrow)
    if narrow is not None:
        return _cast_to_narrow(view, rewriter, narrow)
    if to_half(view):
        return [each(node.name, "half_strided_f32", node.inputs, node.outputs[0], new)]
    if old == new:
        return [view_node(node.name, node.inputs[0], node.outputs[0])]
    return [cast(node.name, node.inputs[0], node.outputs[0], old, new)]


_RULES = {
    **dict.fromkeys(ELEMENTWISE.keys() - {"Add", "Div", "Mul", "Sub", "Sum"}, elementwise),
    "Cast": _cast,
    "CastLike": _cast,
    "Mean": _mean,
    "Pow": _power,
    "Where": _where,
}


def lower_elementwise(graph: Graph) -> Graph:
    """Return the graph with Elementwise instead of comparisons, casts, choices and what else goes by elements."""
    return rewrite_nodes(graph, _RULES)
