"""Nodes that compute the same from the same become one.

Rules of gradients compute what they need anew, such as the mean that a normalisation has subtracted, without knowing
what the forward half keeps under which name.
"""

from __future__ import annotations

import numpy as np

from powerlab.engine.ir.constants import Recipe, Value
from powerlab.engine.ir.graph import Graph, Node

_SMALL_ELEMENTS = 64
"""Constants up to this size are compared by what they hold."""


def merge_equal(graph: Graph) -> Graph:
    """Return the graph with one node of each kind; outputs of the graph keep their names."""
    same: dict[str, str] = {}
    seen: dict[object, str] = {}
    for name, value in graph.kept_constants.items():
        key = _content(value)
        if key is not None:
            same[name] = seen.setdefault(key, name)
    outputs, nodes = graph.output_names(), list[Node]()
    for node in graph.nodes:
        inputs = tuple(same.get(name, name) for name in node.inputs)
        if len(node.outputs) == 1 and node.outputs[0] not in outputs:
            first = seen.setdefault((node.op_type, inputs, repr(sorted(node.attributes.items()))), node.outputs[0])
            if first != node.outputs[0]:
                same[node.outputs[0]] = first
                continue
        nodes.append(Node(node.op_type, node.name, inputs, node.outputs, node.attributes))
    return graph.rewritten(nodes)


def _content(value: Value) -> object:
    if isinstance(value, Recipe) or value.size > _SMALL_ELEMENTS:
        return None
    return value.dtype.str, value.shape, np.ascontiguousarray(value).tobytes()
