"""Constant folding: a node whose result no input can change becomes a constant."""

from __future__ import annotations

from powerlab.domain.errors import PowerlabError
from powerlab.engine.constants import Value
from powerlab.engine.graph import Array, Graph, Node, TensorInfo
from powerlab.engine.operators import OPERATORS
from powerlab.engine.operators.view import NodeView
from powerlab.engine.passes.drop_dead import drop_dead

MAX_FOLDED_ELEMENTS = 2**29
"""All folded constants together: 2 GiB of float32, more than any network here, less than a hostile file may ask for."""

_UNUSED = TensorInfo("", ())


def fold_constants(graph: Graph) -> Graph:
    """Return the graph without the nodes that can be computed now.

    Raises:
        PowerlabError: the constants would not fit into memory, or cannot be computed.
    """
    graph = drop_dead(graph)
    constants: dict[str, Value] = dict(graph.kept_constants)
    folded: dict[str, Array] = {}
    nodes: list[Node] = []
    room = MAX_FOLDED_ELEMENTS
    for node in graph.nodes:
        made = [graph.tensors[name] if name else _UNUSED for name in node.outputs]
        rule = OPERATORS.get(node.op_type)
        infos = tuple(graph.tensors[name] if name else None for name in node.inputs)
        view = NodeView(node, infos, tuple(constants.get(name) for name in node.inputs))
        if rule is None or not rule.folds(view):
            nodes.append(node)
            continue
        room -= sum(info.elements for info in made)
        if room < 0:
            raise PowerlabError(f"{node} makes the constants of this model larger than 2 GiB; give a smaller model.")
        values = rule.folded(view, made)
        constants.update(values)
        folded.update(values)
    return graph.rewritten(nodes, constants=folded)
