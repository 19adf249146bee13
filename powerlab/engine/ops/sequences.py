"""Sequences of tensors, resolved while shapes are inferred: nothing but a list of names is left of one.

Exporters write them for Python lists: what a loop appends, the parts of a split whose number the program does not
state. They cannot be inputs or outputs of a network, whose types the engine has as arrays alone.

Source: https://onnx.ai/onnx/operators, SequenceAt and its like, ConcatFromSequence, SplitToSequence, Optional.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from msgspec import Struct, field

from powerlab.engine.ir.constants import Value
from powerlab.engine.ir.graph import Node
from powerlab.engine.ops.control import MAX_INLINED_NODES
from powerlab.engine.ops.view import NodeView

Fresh = Callable[[str], str]
"""Gives a name that no tensor has yet."""

Sequences = Mapping[str, tuple[str, ...]]
"""Name of a sequence -> the tensors it holds."""


class Known(Struct, frozen=True):
    """What is known where a node is looked at: the sequences made before it, and how to name a tensor."""

    sequences: Sequences
    fresh: Fresh


class Resolved(Struct, frozen=True):
    """What a node on sequences comes to.

    Attributes:
        nodes: those that stand in its place.
        constants: that they read.
        sequences: that it makes.
    """

    nodes: tuple[Node, ...] = ()
    constants: Mapping[str, Value] = field(default_factory=dict)
    sequences: Sequences = field(default_factory=dict)


def construct(name: str, tensors: tuple[str, ...]) -> Node:
    """Return the node that makes the sequence ``name`` of tensors."""
    return Node("SequenceConstruct", name, tensors, (name,))


def _held(view: NodeView, known: Known) -> tuple[str, ...]:
    if view.node.input(0) not in known.sequences:
        view.fail("needs a sequence as its input 1")
    return known.sequences[view.node.inputs[0]]


def _position(view: NodeView, index: int, most: int) -> int:
    """Return a place in a sequence, counted from its beginning: input ``index``, which may count from the end."""
    places = view.int_values(index)
    if len(places) != 1 or not -most <= places[0] <= most:
        view.fail(f"names the place {places[:4]} of a sequence of {most} tensors")
    return places[0] + most if places[0] < 0 else places[0]


def _same(view: NodeView, source: str) -> Resolved:
    return Resolved((Node("Identity", view.node.name, (source,), view.node.outputs),))


def _told(view: NodeView, known: Known, value: Value) -> Resolved:
    name = known.fresh(f"{view.node.outputs[0]}/value")
    return Resolved(_same(view, name).nodes, {name: value})


def _construct(view: NodeView, _known: Known) -> Resolved:
    return Resolved(sequences={view.node.outputs[0]: view.node.inputs})


def _at(view: NodeView, known: Known) -> Resolved:
    held = _held(view, known)
    place = _position(view, 1, len(held))
    if place == len(held):
        view.fail(f"reads tensor {place} of a sequence of {place} tensors, which are counted from 0")
    return _same(view, held[place])


def _length(view: NodeView, known: Known) -> Resolved:
    return _told(view, known, np.asarray(len(_held(view, known)), np.int64))


def _insert(view: NodeView, known: Known) -> Resolved:
    held = _held(view, known)
    place = _position(view, 2, len(held)) if view.has(2) else len(held)
    return Resolved(sequences={view.node.outputs[0]: (*held[:place], view.node.inputs[1], *held[place:])})


def _erase(view: NodeView, known: Known) -> Resolved:
    held = _held(view, known)
    place = _position(view, 1, len(held)) if view.has(1) else len(held) - 1
    if not held or place == len(held):
        view.fail(f"takes a tensor away that a sequence of {len(held)} does not have")
    return Resolved(sequences={view.node.outputs[0]: (*held[:place], *held[place + 1 :])})


def _concat(view: NodeView, known: Known) -> Resolved:
    node, held = view.node, _held(view, known)
    if not held:
        view.fail("joins a sequence that holds no tensor")
    axis = view.integer("axis", 0)
    nodes = []
    if view.integer("new_axis", 0):
        rows = tuple(known.fresh(f"{node.outputs[0]}/{index}") for index in range(len(held)))
        nodes = [
            Node("Unsqueeze", row, (name,), (row,), {"axes": (axis,)}) for name, row in zip(held, rows, strict=True)
        ]
        held = rows
    return Resolved((*nodes, Node("Concat", node.name, held, node.outputs, {"axis": axis})))


def _split(view: NodeView, known: Known) -> Resolved:
    node, shape = view.node, view.shape(0)
    axis = view.axis(view.integer("axis", 0), len(shape))
    sizes = _sizes(view, shape[axis])
    parts = tuple(known.fresh(f"{node.outputs[0]}/{index}") for index in range(len(sizes)))
    lengths = known.fresh(f"{node.outputs[0]}/lengths")
    nodes = [Node("Split", node.name, (node.inputs[0], lengths), parts, {"axis": axis})]
    if not view.has(1) and not view.integer("keepdims", 1):
        rows = tuple(known.fresh(f"{part}/row") for part in parts)
        nodes += [
            Node("Squeeze", row, (part,), (row,), {"axes": (axis,)}) for part, row in zip(parts, rows, strict=True)
        ]
        parts = rows
    return Resolved(tuple(nodes), {lengths: np.asarray(sizes, np.int64)}, {node.outputs[0]: parts})


def _sizes(view: NodeView, size: int) -> tuple[int, ...]:
    """Return how long the parts are into which a SplitToSequence cuts an axis of ``size``."""
    if view.has(1) and view.shape(1):
        return view.int_values(1)
    (each,) = view.int_values(1) if view.has(1) else (1,)
    if each < 1 or size // each > MAX_INLINED_NODES:
        view.fail(f"cuts an axis of {size} into parts of {each}")
    whole, rest = divmod(size, each)
    return (each,) * whole + ((rest,) if rest else ())


def _optional(view: NodeView, known: Known) -> Resolved:
    if not view.node.inputs:
        view.fail("holds nothing, which the engine has no form for")
    return _handed_on(view, known)


def _has_element(view: NodeView, known: Known) -> Resolved:
    return _told(view, known, np.asarray(bool(view.node.inputs)))


def _handed_on(view: NodeView, known: Known) -> Resolved:
    source = view.node.inputs[0]
    if source in known.sequences:
        return Resolved(sequences={view.node.outputs[0]: known.sequences[source]})
    return _same(view, source)


SEQUENCES: Mapping[str, Callable[[NodeView, Known], Resolved]] = {
    "ConcatFromSequence": _concat,
    "Optional": _optional,
    "OptionalGetElement": _handed_on,
    "OptionalHasElement": _has_element,
    "SequenceAt": _at,
    "SequenceConstruct": _construct,
    "SequenceEmpty": _construct,
    "SequenceErase": _erase,
    "SequenceInsert": _insert,
    "SequenceLength": _length,
    "SplitToSequence": _split,
}
"""Operator -> what it comes to."""


def resolved(view: NodeView, known: Known) -> Resolved | None:
    """Return what a node on sequences comes to, an Identity of one too; None for a node on tensors alone."""
    node = view.node
    if node.op_type in SEQUENCES:
        return SEQUENCES[node.op_type](view, known)
    if node.op_type == "Identity" and node.input(0) in known.sequences:
        return _handed_on(view, known)
    return None
