"""A number that multiplies a product of two computed matrices, or one of them, becomes the product's own factor.

Attention divides its scores by the root of their length: before the product, behind it, or a bit on either side.
"""

from __future__ import annotations

import math
from functools import partial
from typing import cast

import numpy as np

from powerlab.engine.ir.graph import Graph, Node
from powerlab.engine.ops.activation import is_linear
from powerlab.engine.ops.view import FLOAT32
from powerlab.engine.passes.legalize.elementwise import strided
from powerlab.engine.passes.rewriting import Rewriter, Sole, fuse_into_producers

_TIMES, _OVER = strided("mul", FLOAT32), strided("div", FLOAT32)


def fold_factors(graph: Graph) -> Graph:
    """Return the graph with every such factor in the attribute ``alpha`` of its Product."""
    if "Product" not in graph.operators:
        return graph
    while True:
        folded = fuse_into_producers(graph, _behind)
        for side in (0, 1):
            folded = fuse_into_producers(folded, partial(_before, side))
        if len(folded.nodes) == len(graph.nodes):
            return folded
        graph = folded


def _behind(node: Node, sole: Sole, rewriter: Rewriter) -> tuple[Node, Node] | None:
    scaled = _scaled(node, rewriter)
    product = sole(scaled[0]) if scaled else None
    if scaled is None or product is None or product.op_type != "Product":
        return None
    return _times(product, scaled[1], product.inputs, node.outputs[0]), product


def _before(side: int, node: Node, sole: Sole, rewriter: Rewriter) -> tuple[Node, Node] | None:
    factor = sole(node.inputs[side]) if node.op_type == "Product" and len(set(node.inputs)) == 2 else None
    scaled = _scaled(factor, rewriter) if factor else None
    if factor is None or scaled is None:
        return None
    inputs = tuple(scaled[0] if index == side else name for index, name in enumerate(node.inputs))
    return _times(node, scaled[1], inputs, node.outputs[0]), factor


def _times(product: Node, factor: float, inputs: tuple[str, ...], output: str) -> Node:
    alpha = cast("float", product.attributes["alpha"]) * factor
    return Node("Product", product.name, inputs, (output,), {**product.attributes, "alpha": alpha})


def _scaled(node: Node, rewriter: Rewriter) -> tuple[str, float] | None:
    """Return the tensor that a node multiplies with one number, and that number; None: it does something else."""
    if node.op_type == "ScaleShift":
        scale, shift = (rewriter.value(name) for name in node.inputs[1:])
        alike = is_linear(node) and not np.any(shift) and np.all(scale == scale[0]) and np.isfinite(scale[0])
        return (node.inputs[0], float(scale[0])) if alike else None
    if node.op_type != "Elementwise" or node.attributes["kernel"] not in (_TIMES, _OVER):
        return None
    over = node.attributes["kernel"] == _OVER
    for tensor, constant in (node.inputs, node.inputs[::-1]) if not over else (node.inputs,):
        if constant not in rewriter.graph.constants or rewriter.shape(tensor) != rewriter.shape(node.outputs[0]):
            continue
        if rewriter.kept(constant).size != 1:  # asked before a large one is made for nothing
            continue
        value = rewriter.value(constant).item()
        if over and abs(value) < float(np.finfo(np.float32).tiny):  # its reciprocal may be infinite
            return None
        if math.isfinite(value):
            return tensor, 1 / value if over else value
    return None
