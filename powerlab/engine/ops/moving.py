"""Operators that move elements and compute nothing: Slice, Concat, Pad, Tile, DepthToSpace and others."""

from __future__ import annotations

from typing import Any

import numpy as np

from powerlab.engine.ir.graph import Array
from powerlab.engine.ops.base import Operator, same_as_input
from powerlab.engine.ops.broadcasting import broadcast_shapes
from powerlab.engine.ops.view import INT64, NodeView, Spec

PAD_MODES = {"constant": "constant", "edge": "edge", "reflect": "reflect", "wrap": "wrap"}
MOST_PADDING = 65536
"""Elements at one end of an axis: more than any network pads, and less than a hostile file may ask for."""


def concat_axis(view: NodeView) -> int:
    """Return the axis along which a Concat node joins its inputs, counted from the front."""
    if not view.infos or not view.has_attribute("axis"):
        view.fail("lacks inputs or the attribute axis")
    return view.axis(view.integer("axis", 0), len(view.shape(0)))


def _concat(view: NodeView) -> Spec:
    axis = concat_axis(view)
    first = view.shape(0)
    total = 0
    for index in range(len(view.infos)):
        shape = view.shape(index)
        fits = len(shape) == len(first) and all(
            a == b for i, (a, b) in enumerate(zip(shape, first, strict=True)) if i != axis
        )
        if not fits or view.dtype(index) != view.dtype(0):
            view.fail(f"joins the shapes {first} and {shape} along axis {axis}, which do not fit")
        total += shape[axis]
    return (*first[:axis], total, *first[axis + 1 :]), view.dtype(0)


def _concatenated(view: NodeView) -> Array:
    return np.concatenate([view.value(index) for index in range(len(view.infos))], axis=concat_axis(view))


def slices(view: NodeView) -> tuple[slice, ...]:
    """Return one slice an axis for a Slice node: attributes before opset 10, inputs since."""
    shape = view.shape(0)
    if view.has(1):
        starts, ends = view.int_values(1), view.int_values(2)
        axes = view.int_values(3) if view.has(3) else tuple(range(len(starts)))
        steps = view.int_values(4) if view.has(4) else (1,) * len(starts)
    else:
        if not view.has_attribute("starts"):
            view.fail("lacks its starts")
        starts, ends = view.integers("starts", ()), view.integers("ends", ())
        axes, steps = view.integers("axes", tuple(range(len(starts)))), (1,) * len(starts)
    if not len(starts) == len(ends) == len(axes) == len(steps) or 0 in steps:
        view.fail("has starts, ends, axes and steps that do not fit together")
    view.axes(axes, len(shape))
    chosen = [slice(None)] * len(shape)
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        size = shape[axis]
        # Going backwards, a start or an end before the first element must not count from the back.
        stop = None if step < 0 and end < -size else end
        begin = 0 if step > 0 and start < -size else start
        chosen[axis] = slice(begin, stop, step)
    return tuple(chosen)


def _slice(view: NodeView) -> Spec:
    shape = view.shape(0)
    return tuple(len(range(*part.indices(size))) for part, size in zip(slices(view), shape, strict=True)), view.dtype(0)


def split_sizes(view: NodeView) -> tuple[int, ...]:
    """Return the size of each part of a Split node: an attribute before opset 13, an input since, else even parts."""
    axis = split_axis(view)
    size, parts = view.shape(0)[axis], len(view.node.outputs)
    if view.has(1) or view.has_attribute("split"):
        sizes = view.int_values(1) if view.has(1) else view.integers("split", ())
    else:
        if view.integer("num_outputs", parts) != parts:
            view.fail(f"splits into {view.integer('num_outputs', parts)} parts and has {parts} outputs")
        most = -(-size // parts)
        sizes = tuple(min(most, max(0, size - most * index)) for index in range(parts))
    if len(sizes) != len(view.node.outputs) or sum(sizes) != size or any(part < 0 for part in sizes):
        view.fail(f"splits an axis of {size} into parts of {sizes[:8]}, which do not fit")
    return sizes


def split_axis(view: NodeView) -> int:
    """Return the axis that a Split node cuts."""
    return view.axis(view.integer("axis", 0), len(view.shape(0)))


def _split(view: NodeView) -> tuple[Spec, ...]:
    shape, axis = view.shape(0), split_axis(view)
    return tuple(((*shape[:axis], size, *shape[axis + 1 :]), view.dtype(0)) for size in split_sizes(view))


def _parts(view: NodeView) -> tuple[Array, ...]:
    return tuple(np.split(view.value(0), np.cumsum(split_sizes(view))[:-1], split_axis(view)))


def _expand(view: NodeView) -> Spec:
    return broadcast_shapes(view, (view.shape(0), view.int_values(1))), view.dtype(0)


def _expanded(view: NodeView) -> Array:
    return np.broadcast_to(view.value(0), _expand(view)[0])


def repeats(view: NodeView) -> tuple[int, ...]:
    """Return how often a Tile node repeats its input along each axis."""
    counts = view.int_values(1)
    if len(counts) != len(view.shape(0)) or any(count < 0 for count in counts):
        view.fail(f"repeats a tensor of {len(view.shape(0))} axes {counts[:8]} times")
    return counts


def _tile(view: NodeView) -> Spec:
    return tuple(size * count for size, count in zip(view.shape(0), repeats(view), strict=True)), view.dtype(0)


def pad_mode(view: NodeView) -> str:
    """Return how a Pad node fills what it adds."""
    mode = view.text("mode", "constant")
    if mode not in PAD_MODES:
        view.fail(f"pads by {mode!r}, which is none of {', '.join(PAD_MODES)}")
    return mode


def padding(view: NodeView) -> tuple[tuple[int, int], ...]:
    """Return what a Pad node adds before and after each axis; below 0 it takes away."""
    shape = view.shape(0)
    pads = view.int_values(1) if view.has(1) else view.integers("pads", ())
    axes = list(range(len(shape)))
    if view.has(3):
        axes = [view.axis(axis, len(shape)) for axis in view.int_values(3)]
        view.axes(tuple(axes), len(shape))
    if len(pads) != 2 * len(axes) or any(abs(pad) > MOST_PADDING for pad in pads):
        view.fail(f"has pads {pads[:8]} for {len(axes)} axes; it needs two an axis, of at most {MOST_PADDING}")
    found = [(0, 0)] * len(shape)
    for index, axis in enumerate(axes):
        before, after = pads[index], pads[index + len(axes)]
        if pad_mode(view) == "reflect" and max(before, after) >= max(shape[axis], 1):
            view.fail(f"reflects {max(before, after)} elements of an axis that has {shape[axis]}")
        if shape[axis] + min(before, 0) + min(after, 0) < (0 if pad_mode(view) == "constant" else 1):
            view.fail(f"takes more away from axis {axis} than there is")
        found[axis] = (before, after)
    return tuple(found)


def pad_value(view: NodeView) -> Array | None:
    """Return what a Pad node adds, without axes; None: it is computed while the network runs."""
    if not view.has(2):
        return np.asarray(view.number("value", 0.0), view.dtype(0))
    value = view.constant(2)
    if value is None:
        return None
    return np.asarray(value.reshape(-1)[0] if value.size else 0, view.dtype(0))


def pads_zeros(view: NodeView) -> bool:
    """Say whether a Pad node, not yet lowered, adds zeros, as a convolution does."""
    if view.has_attribute("before"):
        return False
    value = pad_value(view)
    zeros = pad_mode(view) == "constant" and value is not None and float(value) == 0.0
    return zeros and all(pad >= 0 for pads in padding(view) for pad in pads)


def zeros_around_images(view: NodeView) -> tuple[int, ...] | None:
    """Return how many zeros a Pad node puts before all axes of images, then behind; None where it does more."""
    if not pads_zeros(view):
        return None
    batch, channels, *axes = padding(view)
    if batch != (0, 0) or channels != (0, 0):
        return None
    return (*(before for before, _ in axes), *(after for _, after in axes))


def pixels_around_images(view: NodeView) -> tuple[int, ...] | None:
    """Return how many pixels of the images themselves a Pad node puts above, left, below and right of them.

    A row of pixels is an image of one row. None where the node does something else: fills with a number, takes pixels
    away, or pads other axes than the pixels'.
    """
    rank = len(view.shape(0))
    if rank not in (3, 4) or pad_mode(view) not in ("edge", "reflect") or 0 in view.shape(0):
        return None
    batch, channels, *pixels = padding(view)
    rows, columns = pixels if rank == 4 else ((0, 0), pixels[0])
    pads = (rows[0], columns[0], rows[1], columns[1])
    return pads if batch == channels == (0, 0) and min(pads) >= 0 and any(pads) else None


def _pad(view: NodeView) -> Spec:
    return tuple(size + sum(pads) for size, pads in zip(view.shape(0), padding(view), strict=True)), view.dtype(0)


def _padded(view: NodeView) -> Array:
    value, pads = view.value(0), padding(view)
    if not pads:
        return value  # a number has no ends
    ends = zip(pads, value.shape, strict=True)
    kept = tuple(slice(max(0, -before), size - max(0, -after)) for (before, after), size in ends)
    added = [(max(0, before), max(0, after)) for before, after in pads]
    how: dict[str, Any] = {"mode": pad_mode(view)}
    if how["mode"] == "constant":
        how["constant_values"] = pad_value(view)
    return np.asarray(np.pad(value[kept], added, **how))


def block_size(view: NodeView) -> int:
    """Return the pixels along one side of the blocks that DepthToSpace and SpaceToDepth move."""
    block = view.integer("blocksize", 0)
    if block < 1 or len(view.shape(0)) != 4:
        view.fail(f"has blocks of {block} for the shape {view.shape(0)}")
    return block


def _depth_to_space(view: NodeView) -> Spec:
    block = block_size(view)
    n, c, h, w = view.shape(0)
    if c % block**2:
        view.fail(f"spreads {c} channels over blocks of {block} × {block} pixels")
    return (n, c // block**2, h * block, w * block), view.dtype(0)


def _space_to_depth(view: NodeView) -> Spec:
    block = block_size(view)
    n, c, h, w = view.shape(0)
    if h % block or w % block:
        view.fail(f"gathers {h} × {w} pixels by blocks of {block} × {block}")
    return (n, c * block**2, h // block, w // block), view.dtype(0)


def blocks_of(view: NodeView) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return as which shape the input is seen when blocks move, and in which order its axes then go."""
    block = block_size(view)
    n, c, h, w = view.shape(0)
    mode = view.text("mode", "DCR")
    if mode not in ("DCR", "CRD"):
        view.fail(f"orders channels by {mode!r}, which is neither DCR nor CRD")
    if view.node.op_type == "SpaceToDepth":
        return (n, c, h // block, block, w // block, block), (0, 1, 3, 5, 2, 4) if mode == "CRD" else (0, 3, 5, 1, 2, 4)
    if mode == "CRD":
        return (n, c // block**2, block, block, h, w), (0, 1, 4, 2, 5, 3)
    return (n, block, block, c // block**2, h, w), (0, 3, 4, 1, 5, 2)


def _moved_blocks(view: NodeView) -> Array:
    shape, order = blocks_of(view)
    rule = _space_to_depth if view.node.op_type == "SpaceToDepth" else _depth_to_space
    return view.value(0).reshape(shape).transpose(order).reshape(rule(view)[0])


def sequence_axes(view: NodeView) -> tuple[int, int]:
    """Return the axes of time and of sequences of a ReverseSequence node."""
    time, batch = view.integer("time_axis", 0), view.integer("batch_axis", 1)
    if {time, batch} != {0, 1} or len(view.shape(0)) < 2 or view.shape(1) != (view.shape(0)[batch],):
        view.fail("needs time and sequences on its first two axes, and one length a sequence")
    return time, batch


def _reverse(view: NodeView) -> Spec:
    time, _ = sequence_axes(view)
    if view.dtype(1) != INT64:
        view.fail(f"needs lengths of type int64, but they are {view.dtype(1)}")
    longest = view.shape(0)[time]
    if view.is_known(1) and not all(0 <= length <= longest for length in view.int_values(1)):
        view.fail(f"needs lengths from 0 to {longest}, but they are {view.int_values(1)[:8]}")
    return same_as_input(view)


def _reversed(view: NodeView) -> Array:
    time, _ = sequence_axes(view)
    value = view.value(0).copy() if time == 0 else view.value(0).swapaxes(0, 1).copy()
    for index, length in enumerate(view.value(1)):
        value[:length, index] = value[:length, index][::-1]
    return value if time == 0 else value.swapaxes(0, 1)


def triangle(view: NodeView) -> Array:
    """Return which elements of its last two axes a Trilu node keeps."""
    if len(view.shape(0)) < 2:
        view.fail(f"needs a matrix, but its input has the shape {view.shape(0)}")
    rows, columns = view.shape(0)[-2:]
    diagonals = view.int_values(1) if view.has(1) else (0,)
    if len(diagonals) != 1:
        view.fail(f"needs one diagonal, but it has {len(diagonals)}")
    distance = np.arange(columns) - np.arange(rows)[:, None]
    return np.asarray(distance >= diagonals[0] if view.integer("upper", 1) else distance <= diagonals[0])


def _trilu(view: NodeView) -> Spec:
    triangle(view)
    return same_as_input(view)


OPERATORS: dict[str, Operator] = {
    "Concat": Operator(_concat, _concatenated),
    "DepthToSpace": Operator(_depth_to_space, _moved_blocks),
    "Expand": Operator(_expand, _expanded),
    "Pad": Operator(_pad, _padded),
    "ReverseSequence": Operator(_reverse, _reversed),
    "Slice": Operator(_slice, lambda view: view.value(0)[slices(view)]),
    "SpaceToDepth": Operator(_space_to_depth, _moved_blocks),
    "Split": Operator(lambda view: _split(view)[0], _parts, infer_more=lambda view: _split(view)[1:]),
    "Tile": Operator(_tile, lambda view: np.tile(view.value(0), repeats(view))),
    "Trilu": Operator(_trilu, lambda view: np.where(triangle(view), view.value(0), view.dtype(0).type(0))),
}
"""Operator → rule."""
