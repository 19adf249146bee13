"""x / 2 (1 + erf(x / sqrt 2)), as exporters write it with five operators, becomes Gelu."""

from __future__ import annotations

import math
from collections.abc import Iterator

from powerlab.engine.ir.graph import Graph, Node
from powerlab.engine.passes.rewriting import Sole, sole_among


def fuse_gelus(graph: Graph) -> Graph:
    """Return the graph with Gelu in place of its formula; what nobody reads any more is dropped later."""
    made = graph.producers()
    sole = sole_among(made, graph)
    nodes = []
    for node in graph.nodes:
        source = _source(graph, node, made, sole) if node.op_type == "Mul" else ""
        nodes.append(Node("Gelu", node.name, (source,), node.outputs) if source else node)
    return graph.rewritten(nodes)


def _source(graph: Graph, node: Node, made: dict[str, Node], sole: Sole) -> str:
    """Return x where a product is that of 1/2, x and 1 + erf(x / sqrt 2); else nothing."""
    factor, factors = 1.0, []
    for name in _factors(node, sole):
        number = _number(graph, name)
        factor *= 1.0 if number is None else number
        factors += [name] if number is None else []
    if len(factors) != 2 or not math.isclose(factor, 0.5, rel_tol=1e-6):
        return ""
    for source, other in (factors, factors[::-1]):
        if _is_error_function_and_one(graph, made, other, source):
            return source
    return ""


def _factors(node: Node, sole: Sole) -> Iterator[str]:
    """Yield what is multiplied, through products that nobody else reads."""
    for name in node.inputs:
        before = sole(name)
        if before is not None and before.op_type == "Mul":
            yield from _factors(before, sole)
        else:
            yield name


def _is_error_function_and_one(graph: Graph, made: dict[str, Node], name: str, source: str) -> bool:
    total = made.get(name)
    if total is None or total.op_type != "Add":
        return False
    for one, other in (total.inputs[:2], total.inputs[1::-1]):
        erf = made.get(other)
        if _number(graph, one) == 1.0 and erf is not None and erf.op_type == "Erf":
            scaled = made.get(erf.inputs[0])
            return scaled is not None and _is_over_root_two(graph, scaled, source)
    return False


def _is_over_root_two(graph: Graph, node: Node, source: str) -> bool:
    if node.op_type == "Div" and node.inputs[0] == source:
        number = _number(graph, node.inputs[1])
        return number is not None and math.isclose(number, math.sqrt(2), rel_tol=1e-6)
    if node.op_type != "Mul" or source not in node.inputs:
        return False
    number = _number(graph, node.inputs[1 - node.inputs.index(source)])
    return number is not None and math.isclose(number, math.sqrt(0.5), rel_tol=1e-6)


def _number(graph: Graph, name: str) -> float | None:
    """Return a constant that is one number."""
    if name not in graph.constants or graph.tensors[name].elements != 1:
        return None
    return float(graph.constants[name].reshape(-1)[0])
