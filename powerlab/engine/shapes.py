"""Static shapes: nodes, inputs and constants become a checked Graph in which every tensor has its shape and type."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from powerlab.domain.errors import PowerlabError
from powerlab.engine.constants import Constants, Value, value_of
from powerlab.engine.graph import MAX_AXES, Graph, Node, TensorInfo, quoted
from powerlab.engine.operators import NodeView, operator

MAX_ELEMENTS = 2**31 - 1
"""The largest tensor: more than any network here needs, and it keeps a hostile file from asking for all memory."""

_MAX_TRACKED_ELEMENTS = 4096
"""Values up to this many elements are followed while shapes are inferred: shape arithmetic is small."""


def checked_shape(shape: Sequence[int], owner: object) -> tuple[int, ...]:
    """Return ``shape`` as plain ints.

    Raises:
        PowerlabError: an axis is negative, there are too many, or the tensor is larger than ``MAX_ELEMENTS``.
    """
    sizes = tuple(int(size) for size in shape)
    if len(sizes) > MAX_AXES or any(size < 0 for size in sizes) or math.prod(sizes) > MAX_ELEMENTS:
        raise PowerlabError(
            f"{owner} has the impossible shape {sizes[:8]}; export the model again or give another input shape."
        )
    return sizes


def sorted_nodes(nodes: Sequence[Node], available: Iterable[str]) -> tuple[Node, ...]:
    """Return the nodes so that each stands after those that make its inputs, otherwise in the order given.

    Raises:
        PowerlabError: a tensor is missing, made twice, or needs itself.
    """
    made = set(available)
    makers: dict[str, int] = {}
    for index, node in enumerate(nodes):
        for name in filter(None, node.outputs):
            if name in makers or name in made:
                raise PowerlabError(f"{node} makes the tensor {quoted(name)}, which is already there.")
            makers[name] = index
    waiting = [{name for name in node.inputs if name and name not in made} for node in nodes]
    readers: dict[int, list[int]] = {}
    for index, names in enumerate(waiting):
        for name in names:
            if name not in makers:
                raise PowerlabError(f"{nodes[index]} reads the tensor {quoted(name)}, which nothing makes.")
            readers.setdefault(makers[name], []).append(index)
    if all(makers[name] < index for index, names in enumerate(waiting) for name in names):
        return tuple(nodes)
    order: list[int] = []
    ready = [index for index in reversed(range(len(nodes))) if not waiting[index]]
    while ready:
        index = ready.pop()
        order.append(index)
        for reader in readers.get(index, ()):
            if waiting[reader]:
                waiting[reader] -= set(nodes[index].outputs)
                if not waiting[reader]:
                    ready.append(reader)
    if len(order) < len(nodes):
        stuck = next(nodes[index] for index, names in enumerate(waiting) if names)
        raise PowerlabError(f"{stuck} needs, directly or through others, its own output, which no network can.")
    return tuple(nodes[index] for index in order)


def infer(
    name: str,
    nodes: Sequence[Node],
    inputs: Sequence[TensorInfo],
    output_names: Sequence[str],
    constants: Mapping[str, Value],
) -> Graph:
    """Return the graph with the shape and type of every tensor.

    Raises:
        PowerlabError: an operator is unknown, or shapes, types or attributes do not fit together; it names the node.
    """
    known = {key: value_of(value) for key, value in constants.items() if value.size <= _MAX_TRACKED_ELEMENTS}
    tensors = {key: TensorInfo(key, value.shape, value.dtype) for key, value in constants.items()}
    for info in inputs:
        checked_shape(info.shape, f"the input {quoted(info.name)}")
        tensors[info.name] = info
    done: list[Node] = []
    made_later = {output for node in nodes for output in node.outputs}
    for node in sorted_nodes(nodes, tensors):
        for wanted in filter(None, node.inputs):
            if wanted not in tensors:
                raise PowerlabError(f"{node} reads {quoted(wanted)}, an extra output that the engine does not compute.")
        rule = operator(node)
        view = NodeView(
            node,
            tuple(tensors[wanted] if wanted else None for wanted in node.inputs),
            tuple(known.get(wanted) for wanted in node.inputs),
        )
        specs = (rule.infer(view), *rule.infer_more(view))
        named = _named(node, len(specs), (tensors, made_later))
        infos = [
            TensorInfo(output, checked_shape(shape, node), dtype)
            for output, (shape, dtype) in zip(named, specs, strict=False)
        ]
        tensors.update((info.name, info) for info in infos if info.name)
        done.append(replace(node, outputs=named))
        made = infos[0]
        value = rule.folded(view, made) if made.elements <= _MAX_TRACKED_ELEMENTS else None
        if value is not None:
            known[made.name] = value
    outputs = []
    for wanted in output_names:
        if wanted not in tensors:
            raise _unmade_output(nodes, wanted)
        outputs.append(tensors[wanted])
    return Graph(name, tuple(done), tuple(inputs), tuple(outputs), Constants(constants), tensors)


def _named(node: Node, count: int, taken: Sequence[Collection[str]]) -> tuple[str, ...]:
    """Return at most ``count`` outputs of a node; the first gets a name in none of ``taken`` where only later have one.

    Raises:
        PowerlabError: none of them has a name.
    """
    first, *more = node.outputs[:count]
    if not any((first, *more)):
        raise PowerlabError(f"{node} has no output that the engine computes; export the model again.")
    if not first:
        first = f"{max(more)}.first"
        while any(first in names for names in taken):
            first += "_"
    return (first, *more)


def _unmade_output(nodes: Sequence[Node], wanted: str) -> PowerlabError:
    maker = next((node for node in nodes if wanted in node.outputs), None)
    why = "which no node makes" if maker is None else f"an extra output of {maker} that the engine does not compute"
    return PowerlabError(f"the graph promises the output {quoted(wanted)}, {why}.")
