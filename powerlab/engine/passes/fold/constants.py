"""Constant folding: a node whose result no input can change becomes a constant."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np
from msgspec.structs import replace

from powerlab.domain.errors import PowerlabError
from powerlab.engine.ir.constants import Recipe, Value
from powerlab.engine.ir.graph import Array, Graph, Node, TensorInfo
from powerlab.engine.ops import OPERATORS, Operator
from powerlab.engine.ops.view import NodeView
from powerlab.engine.passes.simplify.dead_nodes import drop_dead
from powerlab.engine.runtime.memory import ALWAYS_THERE_BYTES, available_bytes, value_bytes

MAX_FOLDED_BYTES = 2**31
"""All folded constants together: more than any network here, less than a hostile file may ask for."""

_UNUSED = TensorInfo("", ())


def _may_fold(rule: Operator, node: Node, constants: Mapping[str, Value]) -> bool:
    """Tell whether it is worth to look at what a node reads: of most a run decides something."""
    return rule.evaluate is not None and (rule.of_shape or constants.keys() >= {*filter(None, node.inputs)})


def fold_constants(graph: Graph, *, floats: bool = True, leave: Collection[str] = ()) -> Graph:
    """Return the graph without the nodes that can be computed now.

    Args:
        graph: any.
        floats: whether those that make floats are computed, too; else weights stay as they are, to be trained.
        leave: operators that are not computed.

    Raises:
        PowerlabError: the constants do not fit into memory, or cannot be computed.
    """
    graph = drop_dead(graph)
    constants: dict[str, Value] = dict(graph.kept_constants)
    folded: dict[str, Array] = {}
    nodes: list[Node] = []
    made_bytes, room = 0, min(MAX_FOLDED_BYTES, ALWAYS_THERE_BYTES)
    for node in graph.nodes:
        rule = OPERATORS.get(node.op_type)
        wanted = floats or all(graph.tensors[name].dtype.kind != "f" for name in node.outputs if name)
        wanted = wanted and node.op_type not in leave
        may_fold = wanted and rule is not None and _may_fold(rule, node, constants)
        if not may_fold and len(node.outputs) == 1 and graph.tensors[node.outputs[0]].elements:
            nodes.append(node)
            continue
        made = [graph.tensors[name] if name else _UNUSED for name in node.outputs]
        infos = tuple(graph.tensors[name] if name else None for name in node.inputs)
        view = NodeView(node, infos, tuple(constants.get(name) for name in node.inputs))
        if rule is None or not wanted or not rule.folds(view, made):
            empty = {
                info.name: np.zeros(info.shape, info.dtype) for info in made[1:] if info.name and not info.elements
            }
            named = tuple("" if name in empty else name for name in node.outputs)
            nodes.append(replace(node, outputs=named) if empty else node)
            constants.update(empty)
            folded.update(empty)
            continue
        made_bytes += sum(info.elements * info.dtype.itemsize for info in made)
        taken = made_bytes + sum(value_bytes(value) for value in view.values if isinstance(value, Recipe))
        if taken > room:
            room = min(MAX_FOLDED_BYTES, available_bytes())
        if taken > room:
            raise PowerlabError(
                f"{node} makes the constants of this model larger than memory, or than 2 GiB; give a smaller model."
            )
        values = rule.folded(view, made)
        constants.update(values)
        folded.update(values)
    return graph.rewritten(nodes, constants=folded)
