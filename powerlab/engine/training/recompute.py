"""Activations that are computed again in the backward pass, and not kept for it: less memory for more time.

The forward pass is cut where one tensor alone goes on. These tensors are kept; what lies between two of them is
computed again, from the first, when the backward pass comes there (T. Chen et al., Training deep nets with sublinear
memory cost, https://arxiv.org/abs/1604.06174). It gives the same bits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from powerlab.engine.ir.graph import Graph, Node, TensorInfo, fresh_name
from powerlab.engine.training.parts import backward_from

AGAIN = ".gradient.again"
"""Ends the names of nodes that compute again: they belong to the backward pass."""


def recomputed(graph: Graph) -> Graph:
    """Return a step's graph, forward pass first, in which the backward pass computes again what it reads."""
    begin = backward_from([node.name for node in graph.nodes])
    forward, backward = graph.nodes[:begin], list(graph.nodes[begin:])
    tensors: dict[str, TensorInfo] = {}
    *segments, last = _segments(graph, forward)
    kept = {*graph.output_names(), *(name for node in last for name in node.inputs)}
    for segment in reversed(segments):
        clones, renamed = _clones(graph, segment, backward, kept, tensors)
        kept |= {name for node in segment for name in node.inputs}
        if not clones:
            continue
        first = next(at for at, node in enumerate(backward) if not renamed.keys().isdisjoint(node.inputs))
        backward = [_reading(node, renamed) for node in backward]
        backward[first:first] = clones
    return graph.rewritten((*forward, *backward), tensors=tensors.values())


def _segments(graph: Graph, forward: Sequence[Node]) -> list[Sequence[Node]]:
    """Return the forward pass in parts of about as much memory each, the root of as many as there are places to cut."""
    last_read = {name: at for at, node in enumerate(forward) for name in node.inputs}
    made_at = {name: at for at, node in enumerate(forward) for name in node.outputs if name}
    bytes_made = [
        sum(graph.tensors[name].elements for name in node.outputs if last_read.get(name, 0) > made_at.get(name, 0))
        for node in forward
    ]
    alive, cuts = set[str](), list[int]()
    for at, node in enumerate(forward):
        alive = {name for name in (*alive, *node.outputs) if name and last_read.get(name, -1) > at}
        if len(alive) == 1:
            cuts.append(at + 1)
    parts = math.isqrt(len(cuts)) + 1
    found, start, total, passed = list[Sequence[Node]](), 0, sum(bytes_made), 0
    for at, size in enumerate(bytes_made):
        passed += size
        if at + 1 in cuts and passed * parts >= total * (len(found) + 1):
            found.append(forward[start : at + 1])
            start = at + 1
    return [*found, forward[start:]]


def _clones(
    graph: Graph, segment: Sequence[Node], backward: Sequence[Node], kept: set[str], tensors: dict[str, TensorInfo]
) -> tuple[list[Node], dict[str, str]]:
    """Return the nodes that compute again what the backward pass reads of a segment, and the new names of that.

    A batch's means and the like are kept: they are small.

    Args:
        graph: the step's.
        segment: a part of the forward pass.
        backward: the nodes behind the forward pass.
        kept: tensors that are not computed again: later segments read them, or the step gives them.
        tensors: takes what is known of the new ones.
    """
    read_back = {name for node in backward for name in node.inputs}
    inside = {name for node in segment for name in node.outputs if name and len(graph.shape(name)) > 1}
    needed, chosen = (inside & read_back) - kept, list[Node]()
    for node in reversed(segment):
        if not needed.isdisjoint(node.outputs):
            chosen.append(node)
            needed |= {name for name in node.inputs if name in inside and name not in kept} | {node.outputs[0]}
    renamed = {name: fresh_name(graph, f"{name}.again", tensors) for name in sorted(needed)}
    for name, again in renamed.items():
        tensors[again] = TensorInfo(again, graph.shape(name), graph.tensors[name].dtype)
    clones = []
    for node in reversed(chosen):
        outputs = tuple(renamed.get(name, "") for name in node.outputs)
        name = f"{node.name or node.outputs[0]}{AGAIN}"
        clones.append(_reading(Node(node.op_type, name, node.inputs, outputs, node.attributes), renamed))
    return clones, renamed


def _reading(node: Node, renamed: dict[str, str]) -> Node:
    inputs = tuple(renamed.get(name, name) for name in node.inputs)
    return Node(node.op_type, node.name, inputs, node.outputs, node.attributes)
