"""Operators that move elements get numbers in place of the tensors that said what to move; many become others.

Slice, Expand, Tile and Pad are left, and Gather and its kin for places that tensors name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from powerlab.engine.ir.graph import Array, Graph, Node
from powerlab.engine.ops.gathering import UPDATES, batch_axes, hot_axis, hot_depth, picked_axis, update_kind
from powerlab.engine.ops.moving import (
    blocks_of,
    pad_mode,
    pad_value,
    padding,
    repeats,
    sequence_axes,
    slices,
    split_axis,
    split_sizes,
    triangle,
)
from powerlab.engine.ops.view import FLOAT32, INT64, NodeView
from powerlab.engine.passes.legalize.elementwise import cast, each, strided, wrapping
from powerlab.engine.passes.legalize.views import view_node
from powerlab.engine.passes.rewriting import Rewriter, rewrite_nodes


def _slice_node(name: str, source: str, output: str, starts: Sequence[int], steps: Sequence[int]) -> Node:
    return Node("Slice", name, (source,), (output,), {"starts": tuple(starts), "steps": tuple(steps)})


def _slice(view: NodeView, rewriter: Rewriter) -> Sequence[Node] | None:
    node = view.node
    if len(node.inputs) == 1 and "ends" not in node.attributes:
        return None
    parts = [part.indices(size) for part, size in zip(slices(view), view.shape(0), strict=True)]
    starts, steps = [start for start, _, _ in parts], [step for _, _, step in parts]
    if view.shape(0) == rewriter.graph.shape(node.outputs[0]) and set(steps) == {1}:
        return [view_node(node.name, node.inputs[0], node.outputs[0])]
    return [_slice_node(node.name, node.inputs[0], node.outputs[0], starts, steps)]


def _split(view: NodeView, _rewriter: Rewriter) -> Sequence[Node]:
    node, axis, rank = view.node, split_axis(view), len(view.shape(0))
    nodes, start = [], 0
    for index, (output, size) in enumerate(zip(node.outputs, split_sizes(view), strict=True)):
        starts = [start if at == axis else 0 for at in range(rank)]
        if output:
            nodes.append(_slice_node(f"{node.name}.{index}", node.inputs[0], output, starts, (1,) * rank))
        start += size
    return nodes


def _expand(view: NodeView, _rewriter: Rewriter) -> Sequence[Node]:
    node = view.node
    return [Node("Expand", node.name, node.inputs[:1], node.outputs)]


def _tile(view: NodeView, _rewriter: Rewriter) -> Sequence[Node] | None:
    node = view.node
    if "repeats" in node.attributes:
        return None
    return [Node("Tile", node.name, node.inputs[:1], node.outputs, {"repeats": repeats(view)})]


def _pad(view: NodeView, rewriter: Rewriter) -> Sequence[Node] | None:
    node, shape = view.node, view.shape(0)
    if "before" in node.attributes:
        return None
    pads, source, nodes = padding(view), node.inputs[0], []
    taken = [(max(0, -before), max(0, -after)) for before, after in pads]
    if any(map(any, taken)):
        shape = tuple(size - sum(away) for size, away in zip(shape, taken, strict=True))
        kept = rewriter.tensor(f"{node.outputs[0]}.kept", shape, view.dtype(0))
        nodes.append(_slice_node(f"{node.name}.kept", source, kept, [before for before, _ in taken], (1,) * len(shape)))
        source = kept
    added = [(max(0, before), max(0, after)) for before, after in pads]
    if not any(map(any, added)):
        return [*nodes, view_node(node.name, source, node.outputs[0])]
    if pad_mode(view) != "constant":
        return [*nodes, *_pad_from_inside(view, rewriter, source, shape, added)]
    value = pad_value(view)
    filling = node.inputs[2] if value is None else rewriter.constant(f"{node.outputs[0]}.filling", value)
    attributes = {"before": tuple(before for before, _ in added)}
    return [*nodes, Node("Pad", node.name, (source, filling), node.outputs, attributes)]


def _pad_from_inside(
    view: NodeView, rewriter: Rewriter, source: str, shape: tuple[int, ...], added: Sequence[tuple[int, int]]
) -> list[Node]:
    """Pad with elements of the tensor itself: along one axis after the other, joined with parts that are read anew."""
    node, sizes = view.node, list(shape)
    nodes: list[Node] = []
    for axis, pads in enumerate(added):
        if any(pads):
            how: dict[str, Any] = {"mode": pad_mode(view)}
            places = np.pad(np.arange(shape[axis]), pads, **how)
            sizes[axis] = len(places)
            made = rewriter.tensor(f"{node.outputs[0]}.axis{axis}", tuple(sizes), view.dtype(0))
            name, strips = f"{node.name}.axis{axis}", (places[: pads[0]], places[pads[0] + shape[axis] :])
            if all(len(set(np.diff(strip).tolist())) <= 1 for strip in strips):
                before, after = (
                    _strip(rewriter, nodes, f"{made}.{side}", (source, axis), strip)
                    for side, strip in zip(("before", "after"), strips, strict=True)
                )
                parts = tuple(filter(None, (before, source, after)))
                nodes.append(Node("Concat", name, parts, (made,), {"axis": axis}))
            else:  # wrapped more than once
                index = rewriter.constant(f"{made}.places", places.astype(np.int64))
                nodes.append(Node("Gather", name, (source, index), (made,), {"axis": axis}))
            source = made
    return [*nodes, view_node(node.name, source, node.outputs[0])]


def _strip(rewriter: Rewriter, nodes: list[Node], name: str, along: tuple[str, int], places: Array) -> str:
    """Add the nodes that read places, as far apart each from the one before, of an axis; return what they make."""
    (source, axis), count = along, len(places)
    if not count:
        return ""
    shape = rewriter.shape(source)
    dtype = (rewriter.tensors.get(source) or rewriter.graph.tensors[source]).dtype
    step = int(places[1] - places[0]) if count > 1 else 1
    starts, steps = [0] * len(shape), [1] * len(shape)
    starts[axis], steps[axis] = int(places[0]), step or 1
    read = rewriter.tensor(name, (*shape[:axis], count if step else 1, *shape[axis + 1 :]), dtype)
    nodes.append(_slice_node(name, source, read, starts, steps))
    if step:
        return read
    repeated = rewriter.tensor(f"{name}.repeated", (*shape[:axis], count, *shape[axis + 1 :]), dtype)
    nodes.append(Node("Expand", f"{name}.repeated", (read,), (repeated,)))
    return repeated


def move_blocks(view: NodeView, rewriter: Rewriter) -> Sequence[Node]:
    """Return a DepthToSpace or SpaceToDepth as a Transpose between two views."""
    node, output = view.node, view.node.outputs[0]
    shape, order = blocks_of(view)
    apart = rewriter.tensor(f"{output}.apart", shape, view.dtype(0))
    moved = rewriter.tensor(f"{output}.moved", tuple(shape[axis] for axis in order), view.dtype(0))
    return [
        view_node(f"{node.name}.apart", node.inputs[0], apart),
        Node("Transpose", node.name, (apart,), (moved,), {"perm": order}),
        view_node(f"{node.name}.shape", moved, output),
    ]


def _triangle(view: NodeView, rewriter: Rewriter) -> Sequence[Node]:
    node, dtype = view.node, view.dtype(0)
    kept = rewriter.constant(f"{node.outputs[0]}.kept", triangle(view))
    zero = rewriter.constant(f"{node.outputs[0]}.zero", np.zeros((), dtype))
    return [each(node.name, strided("where", dtype), (kept, node.inputs[0], zero), node.outputs[0], dtype)]


class _Wholes:
    """Elementwise nodes of integers in a row, each named after the node they stand for."""

    def __init__(self, view: NodeView, rewriter: Rewriter) -> None:
        self._view, self._rewriter = view, rewriter
        self.nodes: list[Node] = []

    def constant(self, values: Array | int) -> str:
        return self._rewriter.constant(f"{self._view.node.outputs[0]}.numbers", np.asarray(values, np.int64))

    def make(self, stem: str, inputs: Sequence[str], shape: tuple[int, ...]) -> str:
        made = self._rewriter.tensor(f"{self._view.node.outputs[0]}.{stem}", shape, INT64)
        self.nodes.append(each(f"{self._view.node.name}.{stem}", strided(stem, INT64), inputs, made, INT64))
        return made


def _reverse(view: NodeView, rewriter: Rewriter) -> Sequence[Node]:
    """Turn round what comes before the length of each sequence: the place of each element is an integer.

    A length below 0 counts as too long, which leads to a place outside and is refused there.
    """
    node, shape = view.node, view.shape(0)
    time, batch = sequence_axes(view)
    rest = (1,) * (len(shape) - 2)
    whole = _Wholes(view, rewriter)
    across = tuple(shape[1] if axis == batch else 1 for axis in range(2)) if batch == 1 else (shape[0], 1)
    steps_shape = tuple(shape[time] if axis == time else 1 for axis in range(2))
    told = rewriter.tensor(f"{node.outputs[0]}.lengths", (*across, *rest), view.dtype(1))
    whole.nodes.append(view_node(f"{node.name}.lengths", node.inputs[1], told))
    below = whole.make("less", (told, whole.constant(0)), (*across, *rest))
    lengths = whole.make("where", (below, whole.constant(shape[time] + 1), told), (*across, *rest))
    step = whole.constant(np.arange(shape[time]).reshape(*steps_shape, *rest))
    both = (*shape[:2], *rest)
    before = whole.make("less", (step, lengths), both)
    last = whole.make("sub", (lengths, whole.constant(1)), (*across, *rest))
    turned = whole.make("sub", (last, step), both)
    places = whole.make("where", (before, turned, step), both)
    return [
        *whole.nodes,
        Node("GatherElements", node.name, (node.inputs[0], places), node.outputs, {"axis": time}),
    ]


def _one_hot(view: NodeView, rewriter: Rewriter) -> Sequence[Node]:
    node, output, axis, depth = view.node, view.node.outputs[0], hot_axis(view), hot_depth(view)
    shape = (*view.shape(0)[:axis], 1, *view.shape(0)[axis:])
    whole = _Wholes(view, rewriter)
    classes = rewriter.tensor(f"{output}.classes", shape, view.dtype(0))
    whole.nodes.append(view_node(f"{node.name}.classes", node.inputs[0], classes))
    if view.dtype(0) == FLOAT32:
        cut = rewriter.tensor(f"{output}.whole", shape, INT64)
        whole.nodes.append(cast(f"{node.name}.whole", classes, cut, FLOAT32, INT64))
        classes = cut
    below = whole.make("less", (classes, whole.constant(0)), shape)
    from_end = whole.make("add", (classes, whole.constant(depth)), shape)
    place = whole.make("where", (below, from_end, classes), shape)
    ladder = whole.constant(np.arange(depth).reshape(-1, *(1,) * (len(shape) - 1 - axis)))
    hot = whole.make("equal", (place, ladder), (*shape[:axis], depth, *shape[axis + 1 :]))
    values, ends = node.inputs[2], []
    for index, name in enumerate(("off", "on")):
        ends.append(rewriter.tensor(f"{output}.{name}", (1,), view.dtype(2)))
        whole.nodes.append(_slice_node(f"{node.name}.{name}", values, ends[-1], (index,), (1,)))
    kernel = strided("where", view.dtype(2))
    return [*whole.nodes, each(node.name, kernel, (hot, ends[1], ends[0]), output, view.dtype(2))]


def _along_axis(view: NodeView, _rewriter: Rewriter) -> Sequence[Node]:
    node = view.node
    return [Node(node.op_type, node.name, node.inputs, node.outputs, {"axis": picked_axis(view)})]


def _gather_nd(view: NodeView, _rewriter: Rewriter) -> Sequence[Node]:
    node = view.node
    return [Node("GatherND", node.name, node.inputs, node.outputs, {"batch_dims": batch_axes(view)})]


def _scatter(view: NodeView, rewriter: Rewriter) -> Sequence[Node] | None:
    node = view.node
    if "update" in node.attributes:
        return None
    if 0 in view.shape(1):
        return [view_node(node.name, node.inputs[0], node.outputs[0])]
    operator = "ScatterND" if node.op_type == "ScatterND" else "ScatterElements"
    axis = {} if operator == "ScatterND" else {"axis": picked_axis(view)}
    attributes = {**axis, "update": UPDATES[update_kind(view)], "wrapping": wrapping(view.dtype(0))}
    before, data = _filled(view, rewriter)
    return [*before, Node(operator, node.name, (data, *node.inputs[1:]), node.outputs, attributes)]


def _filled(view: NodeView, rewriter: Rewriter) -> tuple[Sequence[Node], str]:
    """Return the data that a scatter updates; where it is one number everywhere, with the node that writes it so."""
    data, value = view.node.inputs[0], view.values[0]
    if not isinstance(value, np.ndarray) or not value.ndim or any(value.strides):
        return (), data
    once = rewriter.constant(f"{data}.once", value[(slice(1),) * value.ndim].copy())
    filled = rewriter.tensor(f"{data}.filled", value.shape, value.dtype)
    return (Node("Expand", filled, (once,), (filled,)),), filled


_RULES = {
    "DepthToSpace": move_blocks,
    "Expand": _expand,
    "Gather": _along_axis,
    "GatherElements": _along_axis,
    "GatherND": _gather_nd,
    "OneHot": _one_hot,
    "Pad": _pad,
    "ReverseSequence": _reverse,
    "Scatter": _scatter,
    "ScatterElements": _scatter,
    "ScatterND": _scatter,
    "Slice": _slice,
    "SpaceToDepth": move_blocks,
    "Split": _split,
    "Tile": _tile,
    "Trilu": _triangle,
}


def lower_moves(graph: Graph) -> Graph:
    """Return the graph with moves in the form the native core takes; after convolutions took the padding they can."""
    return rewrite_nodes(graph, _RULES)
