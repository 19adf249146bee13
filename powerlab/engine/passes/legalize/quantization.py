"""QuantizeLinear and DequantizeLinear that no kernel of integers took in become one kernel of general tensors each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from powerlab.engine.ir.graph import Graph, Node
from powerlab.engine.ops.casting import saturates
from powerlab.engine.ops.quantization import check_scales, expanded, float_kind, limits_of, parameter_shape
from powerlab.engine.ops.view import FLOAT32, INT64, NodeView
from powerlab.engine.passes.legalize.elementwise import cast, each, strided
from powerlab.engine.passes.legalize.views import view_node
from powerlab.engine.passes.rewriting import Rewriter, rewrite_nodes


class _Parameters:
    """The scale and the zero point of a node, in shapes that broadcast, and the nodes that bring them there."""

    def __init__(self, view: NodeView, rewriter: Rewriter) -> None:
        if view.is_known(1):
            check_scales(view, 1)
        self._view, self._rewriter = view, rewriter
        self.nodes: list[Node] = []
        self.scale = self._shaped(1)
        self.zero_point = self._shaped(2) if view.has(2) else self._zero()

    def _zero(self) -> str:
        view = self._view
        of_floats = view.node.op_type == "DequantizeLinear" and view.dtype(0) == FLOAT32
        return self._rewriter.constant(f"{view.node.outputs[0]}.zero", np.zeros((), FLOAT32 if of_floats else INT64))

    def _shaped(self, index: int) -> str:
        view, rewriter = self._view, self._rewriter
        name, shape = view.node.inputs[index], view.shape(index)
        base = f"{view.node.outputs[0]}.{'scale' if index == 1 else 'zero_point'}"
        if view.is_known(index):
            return rewriter.constant(base, np.ascontiguousarray(expanded(view, view.value(index))))
        if view.integer("block_size", 0):
            return self._blocks(index, base)
        if shape in ((), (1,)):
            return name
        made = rewriter.tensor(base, parameter_shape(view), view.dtype(index))
        self.nodes.append(view_node(base, name, made))
        return made

    def _blocks(self, index: int, base: str) -> str:
        """Repeat what is one a block."""
        view, rewriter = self._view, self._rewriter
        shape = view.shape(0)
        axis = view.axis(view.integer("axis", 1), len(shape))
        places = np.arange(shape[axis], dtype=np.int64) // view.integer("block_size", 0)
        made = rewriter.tensor(base, shape, view.dtype(index))
        inputs = (view.node.inputs[index], rewriter.constant(f"{base}.places", places))
        self.nodes.append(Node("Gather", base, inputs, (made,), {"axis": axis}))
        return made


def _quantize(view: NodeView, rewriter: Rewriter) -> Sequence[Node]:
    node, output, shape = view.node, view.node.outputs[0], view.shape(0)
    parameters = _Parameters(view, rewriter)
    nodes, source = parameters.nodes, node.inputs[0]
    if view.dtype(0) != FLOAT32:
        source = rewriter.tensor(f"{output}.floats", shape)
        nodes.append(cast(f"{node.name}.floats", node.inputs[0], source, view.dtype(0), FLOAT32))
    kind = float_kind(view)
    if kind is None:
        numbers = (0, 0, *limits_of(view))
        operands = (source, parameters.scale, parameters.zero_point)
        made = {"kernel": "quantize_strided_f32", "numbers": numbers}
        return [*nodes, Node("Elementwise", node.name, operands, node.outputs, made)]
    steps = rewriter.tensor(f"{output}.steps", shape)
    nodes.append(each(f"{node.name}.steps", strided("div", FLOAT32), (source, parameters.scale), steps, FLOAT32))
    rounding = {"kernel": "narrow_strided_f32", "numbers": kind.rounding(saturates(view))}
    return [*nodes, Node("Elementwise", node.name, (steps,), node.outputs, rounding)]


def _dequantize(view: NodeView, rewriter: Rewriter) -> Sequence[Node]:
    node, output = view.node, view.node.outputs[0]
    parameters = _Parameters(view, rewriter)
    if view.dtype(0) != FLOAT32:
        operands = (node.inputs[0], parameters.scale, parameters.zero_point)
        made = {"kernel": "dequantize_strided_i64", "numbers": (0, 0, 0, 0)}
        return [*parameters.nodes, Node("Elementwise", node.name, operands, node.outputs, made)]
    apart = rewriter.tensor(f"{output}.apart", view.shape(0))
    sub, mul = strided("sub", FLOAT32), strided("mul", FLOAT32)
    return [
        *parameters.nodes,
        each(f"{node.name}.apart", sub, (node.inputs[0], parameters.zero_point), apart, FLOAT32),
        each(node.name, mul, (apart, parameters.scale), output, FLOAT32),
    ]


def lower_quantization(graph: Graph) -> Graph:
    """Return the graph without QuantizeLinear and DequantizeLinear."""
    return rewrite_nodes(graph, {"DequantizeLinear": _dequantize, "QuantizeLinear": _quantize})
