"""Windows over images: maxima, averages and norms."""

from __future__ import annotations

from collections.abc import Sequence

from powerlab.engine.codegen.attributes import integers, number
from powerlab.engine.gpu.builder import Builder
from powerlab.engine.gpu.recorder import MOST_GROUPS
from powerlab.engine.ir.graph import Node

_KINDS = {"max": 0, "average": 1, "lp": 2}
_NOTHING = (0, 0, 0, 0)
_LANES = 64
"""That share the pixels of a window that is the whole image."""


def lower_max_pool(builder: Builder, node: Node) -> None:
    """Lower a MaxPool."""
    _emit(builder, node, "max", _window(node))


def lower_average_pool(builder: Builder, node: Node) -> None:
    """Lower an AveragePool."""
    pads = integers(node, "pads")
    _emit(builder, node, "average", _window(node), counted=pads if node.attributes["count_include_pad"] else _NOTHING)


def lower_global_average_pool(builder: Builder, node: Node) -> None:
    """Lower a GlobalAveragePool: one window."""
    x = builder.image(node.inputs[0])
    _emit(builder, node, "average", (x.height, x.width, 1, 1, 0, 0, 1, 1))


def lower_pool(builder: Builder, node: Node) -> None:
    """Lower a Pool: windows of any kind."""
    kind = str(node.attributes["kind"])
    counted = integers(node, "counted_pads") if kind == "average" else _NOTHING
    _emit(builder, node, kind, _window(node), counted=counted, power=number(node, "p") if kind == "lp" else 1.0)


def _window(node: Node) -> tuple[int, ...]:
    dilations = integers(node, "dilations") if "dilations" in node.attributes else (1, 1)
    return (*integers(node, "kernel"), *integers(node, "strides"), *integers(node, "pads")[:2], *dilations)


def _emit(
    builder: Builder,
    node: Node,
    kind: str,
    window: Sequence[int],
    *,
    counted: Sequence[int] = _NOTHING,
    power: float = 1.0,
) -> None:
    x, made = builder.image(node.inputs[0]), builder.image(node.outputs[0])
    source = builder.blocks(node.inputs[0])
    whole = tuple(window[:2]) == (x.height, x.width) and tuple(window[4:6]) == (0, 0) and made.pixels == 1
    if whole and not builder.target.broadcasts:
        _emit_whole(builder, node, kind, power)
        return
    sizes = (x.images * x.blocks, x.height, x.width, made.height, made.width)
    builder.emit_flat(
        "pool",
        node,
        (builder.new_blocks(node.outputs[0]), source),
        made.vectors,
        constants=(_KINDS[kind],),
        push=(*sizes, *window, *counted, power),
    )


def _emit_whole(builder: Builder, node: Node, kind: str, power: float) -> None:
    """Append a pool whose windows are whole images; lanes of a GPU have pixels enough to share."""
    x, source = builder.image(node.inputs[0]), builder.blocks(node.inputs[0])
    planes = x.images * x.blocks
    across = min(planes, MOST_GROUPS)
    builder.emit(
        "global_pool",
        node,
        (builder.new_blocks(node.outputs[0]), source),
        constants=(min(_LANES, 1 << x.pixels.bit_length()), _KINDS[kind]),
        push=(planes, x.pixels, power),
        groups=(across, -(-planes // across), 1),
    )
