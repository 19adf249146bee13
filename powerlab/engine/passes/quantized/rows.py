"""Products of quantized sequences with a constant matrix become products of matrices.

All rows of all sequences are one matrix, quantized as such: views stand before its QuantizeLinear, and behind the
product and the row that is added to it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from msgspec.structs import replace

from powerlab.engine.ir.graph import Graph, Node
from powerlab.engine.passes.legalize.views import view_node
from powerlab.engine.passes.rewriting import Rewriter, Sole, sole_readers
from powerlab.engine.passes.simplify.dead_nodes import drop_dead

_MATRIX_AXES = 2


@dataclass(slots=True)
class _Rows:
    """Matrices of rows, by the dequantized tensor that they are of."""

    graph: Graph
    rewriter: Rewriter
    producers: Mapping[str, Node]
    nodes: list[Node] = field(default_factory=list)
    found: dict[str, str] = field(default_factory=dict)

    def add(self, back: Node) -> bool:
        """Let a DequantizeLinear be a view of a matrix; tell whether one scale does for all of it."""
        source = self.producers.get(back.inputs[0])
        if source is None or source.op_type != "QuantizeLinear" or source.inputs[1:] != back.inputs[1:]:
            return False
        if self.graph.shape(source.inputs[1]) not in ((), (1,)) or source.attributes.get("block_size"):
            return False
        whole, rewriter = back.inputs[0], self.rewriter
        shape = self.graph.shape(whole)
        sizes = (math.prod(shape[:-1]), shape[-1])
        floats, made = rewriter.tensor(f"{whole}.exact_rows", sizes), rewriter.tensor(f"{whole}.rows_back", sizes)
        rows = rewriter.tensor(f"{whole}.rows", sizes, self.graph.tensors[whole].dtype)
        self.nodes += [
            view_node(floats, source.inputs[0], floats),
            replace(source, name=rows, inputs=(floats, *source.inputs[1:]), outputs=(rows,)),
            replace(back, name=made, inputs=(rows, *back.inputs[1:]), outputs=(made,)),
            view_node(back.name, made, back.outputs[0]),
        ]
        self.found[back.outputs[0]] = made
        return True


def flatten_rows(graph: Graph) -> Graph:
    """Return the graph with every quantized product by a constant matrix as one of two matrices."""
    if "QuantizeLinear" not in graph.operators:
        return graph
    rewriter = Rewriter(graph)
    rows = _Rows(graph, rewriter, graph.producers())
    multiplied = {node.inputs[0] for node in graph.nodes if _is_of_rows(rows, node)}
    sole_reader, done = sole_readers(graph), set[str]()
    for node in graph.nodes:
        output = node.outputs[0]
        of_rows = node.op_type == "DequantizeLinear" and output in multiplied and rows.add(node)
        if of_rows or output in done:
            continue
        left = rows.found.get(node.inputs[0]) if _is_of_rows(rows, node) else None
        if left is None:
            rows.nodes.append(node)
            continue
        columns = graph.shape(output)[-1]
        sizes = (math.prod(graph.shape(output)[:-1]), columns)
        made = rewriter.tensor(f"{output}.rows", sizes)
        rows.nodes.append(replace(node, inputs=(left, node.inputs[1]), outputs=(made,)))
        addition = _addition(graph, sole_reader, output, columns)
        if addition is not None:
            output, product = addition.outputs[0], made
            made = rewriter.tensor(f"{output}.rows", sizes)
            inputs = tuple(product if name == node.outputs[0] else name for name in addition.inputs)
            rows.nodes.append(replace(addition, inputs=inputs, outputs=(made,)))
            done.add(output)
        rows.nodes.append(view_node(output, made, output))
    return drop_dead(rewriter.finish(rows.nodes)) if rows.found else graph


def _is_of_rows(rows: _Rows, node: Node) -> bool:
    if node.op_type != "MatMul" or len(rows.graph.shape(node.inputs[0])) <= _MATRIX_AXES:
        return False
    weights = rows.producers.get(node.inputs[1])
    if weights is None or weights.op_type != "DequantizeLinear":
        return False
    return weights.inputs[0] in rows.graph.kept_constants and len(rows.graph.shape(node.inputs[1])) == _MATRIX_AXES


def _addition(graph: Graph, sole_reader: Sole, tensor: str, columns: int) -> Node | None:
    """Return the node that adds a constant row to a product, if nothing else reads that."""
    node = sole_reader(tensor)
    if node is None or node.op_type != "Add":
        return None
    rows = [name for name in node.inputs if name in graph.kept_constants and graph.shape(name) == (columns,)]
    return node if rows else None
