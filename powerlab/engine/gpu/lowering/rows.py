"""Operators that take whole rows, runs along the last axes: normalisations, softmax and its logarithm."""

from __future__ import annotations

import math
from collections.abc import Sequence

from powerlab.engine.codegen.attributes import number
from powerlab.engine.gpu.builder import Builder
from powerlab.engine.gpu.recorder import MOST_GROUPS
from powerlab.engine.gpu.target import STAND_IN_LANES, Target
from powerlab.engine.ir.graph import Node
from powerlab.engine.program.storage import Storage

_KINDS = {"softmax": 0, "log_softmax": 1, "layer_norm": 2, "rms_norm": 3, "l2_norm": 4}
_MOST_LANES, _NUMBERS_A_LANE = 256, 4
"""Of a work group: on a GPU so many that each lane has few numbers of a long row."""


def lower_softmax(builder: Builder, node: Node) -> None:
    """Lower a Softmax over any axis."""
    shape = builder.graph.shape(node.inputs[0])
    axis = int(number(node, "axis")) % len(shape)
    masked = int(bool(node.attributes.get("masked", 0)))
    _emit(builder, node, "softmax", (shape[axis], math.prod(shape[axis + 1 :])), masked=masked)


def lower_log_softmax(builder: Builder, node: Node) -> None:
    """Lower a LogSoftmax over the last axis."""
    _emit(builder, node, "log_softmax", (_row(builder, node), 1))


def lower_row_norm(builder: Builder, node: Node) -> None:
    """Lower a RowNorm."""
    vectors = [builder.rows(name) if name else None for name in (node.input(1), node.input(2))]
    kind, epsilon = str(node.attributes["kernel"]), number(node, "epsilon")
    _emit(builder, node, kind, (_row(builder, node), 1), vectors, epsilon=epsilon)


def lower_channel_norm(builder: Builder, node: Node) -> None:
    """Lower a ChannelNorm: the channels of each pixel are a row."""
    _, channels, *pixels = builder.graph.shape(node.inputs[0])
    vectors = [builder.rows(name) if name else None for name in (node.input(1), node.input(2))]
    kind, epsilon = str(node.attributes["kernel"]), number(node, "epsilon")
    _emit(builder, node, kind, (channels, math.prod(pixels)), vectors, epsilon=epsilon)


def lower_group_norm(builder: Builder, node: Node) -> None:
    """Lower a GroupNorm: a group's channels are a row; scale and shift are a channel's, or a group's."""
    _, channels, *pixels = builder.graph.shape(node.inputs[0])
    groups = int(number(node, "groups"))
    size = channels // groups * math.prod(pixels)
    of_channels = builder.graph.shape(node.inputs[1]) == (channels,)
    shared = (groups, math.prod(pixels) if of_channels else size)
    vectors = [builder.rows(name) for name in node.inputs[1:]]
    _emit(builder, node, "layer_norm", (size, 1), vectors, shared=shared, epsilon=number(node, "epsilon"))


def _row(builder: Builder, node: Node) -> int:
    """Return the numbers of a row: all from the axis on."""
    return math.prod(builder.graph.shape(node.inputs[0])[int(number(node, "axis")) :])


def _emit(
    builder: Builder,
    node: Node,
    kind: str,
    row: tuple[int, int],
    vectors: Sequence[Storage | None] = (None, None),
    *,
    shared: tuple[int, int] = (1, 1),
    masked: int = 0,
    epsilon: float = 0.0,
) -> None:
    """Append a dispatch of a work group a row.

    Args:
        builder: gets it.
        node: what is computed.
        kind: one of ``_KINDS``.
        row: its numbers, and how far apart they lie.
        vectors: scale and shift.
        shared: rows after which scale and shift begin anew, and how many numbers of a row share one of each.
        masked: whether a row of nothing but minus infinity becomes zeros.
        epsilon: of a norm.
    """
    size, inner = row
    source = builder.rows(node.inputs[0])
    rows = builder.graph.tensors[node.inputs[0]].elements // size
    across = min(rows, MOST_GROUPS)
    builder.emit(
        "rows",
        node,
        (builder.new_rows(node.outputs[0]), source, *(one or source for one in vectors)),
        constants=(_lanes(builder.target, size), _KINDS[kind], *(int(one is not None) for one in vectors)),
        push=(rows, size, inner, *shared, masked, epsilon),
        groups=(across, -(-rows // across), 1),
    )


def _lanes(target: Target, size: int) -> int:
    lanes, most = STAND_IN_LANES, target.lanes(_MOST_LANES)
    while lanes < most and size > _NUMBERS_A_LANE * lanes:
        lanes *= 2
    return lanes
