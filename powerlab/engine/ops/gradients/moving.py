"""Gradients of what moves elements and computes nothing: views, transposes, concatenations, slices."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from powerlab.engine.ops.gathering import picked_axis
from powerlab.engine.ops.gradients.base import Gradient, Tape
from powerlab.engine.ops.moving import padding, pads_zeros, slices, split_axis, split_sizes
from powerlab.engine.ops.view import NodeView


def _view(view: NodeView, tape: Tape, gradients: tuple[str, ...]) -> Sequence[str]:
    return [tape.reshape(gradients[0], view.shape(0))]


def _identity(_view: NodeView, _tape: Tape, gradients: tuple[str, ...]) -> Sequence[str]:
    return [gradients[0]]


def _transpose(view: NodeView, tape: Tape, gradients: tuple[str, ...]) -> Sequence[str]:
    order = view.integers("perm", tuple(reversed(range(len(view.shape(0))))))
    return [tape("Transpose", gradients[0], perm=tuple(int(axis) for axis in np.argsort(order)))]


def _concat(view: NodeView, tape: Tape, gradients: tuple[str, ...]) -> Sequence[str]:
    axis = view.axis(view.integer("axis", 0), len(view.shape(0)))
    found, start = [], 0
    for index, name in enumerate(view.node.inputs):
        end = start + view.shape(index)[axis]
        bounds = (tape.ints([start]), tape.ints([end]), tape.ints([axis]))
        found.append(tape("Slice", gradients[0], *bounds) if tape.wants(name) else "")
        start = end
    return found


def _split(view: NodeView, tape: Tape, gradients: tuple[str, ...]) -> Sequence[str]:
    """Join the parts; one that nobody read is zeros."""
    axis, shape = split_axis(view), view.shape(0)
    parts = []
    for gradient, size in zip(gradients, split_sizes(view), strict=True):
        zeros = (*shape[:axis], size, *shape[axis + 1 :])
        parts.append(gradient or tape("Expand", tape.floats(0.0), tape.ints(zeros)))
    return [tape("Concat", *parts, axis=axis)]


def _gather(view: NodeView, tape: Tape, gradients: tuple[str, ...]) -> Sequence[str]:
    """Add each gradient where it was picked."""
    shape, axis, indices = view.shape(0), picked_axis(view), view.node.inputs[1]
    before, behind, count = math.prod(shape[:axis]), math.prod(shape[axis + 1 :]), math.prod(view.shape(1))
    places = tape("Expand", tape.reshape(indices, (1, count, 1)), tape.ints((before, count, behind)))
    zeros = tape("Expand", tape.floats(0.0), tape.ints((before, shape[axis], behind)))
    flat = tape.reshape(gradients[0], (before, count, behind))
    return [tape.reshape(tape("ScatterElements", zeros, places, flat, axis=1, reduction="add"), shape)]


def _slice(view: NodeView, tape: Tape, gradients: tuple[str, ...]) -> Sequence[str]:
    """Surround the part with zeros."""
    before, after = [], []
    for size, part in zip(view.shape(0), slices(view), strict=True):
        begin, end, step = part.indices(size)
        if step != 1:
            view.fail(f"takes every {step}th element, which has no gradient in the engine")
        before.append(begin)
        after.append(size - max(begin, end))
    return [tape("Pad", gradients[0], tape.ints([*before, *after]), tape.floats(0.0))]


def _pad(view: NodeView, tape: Tape, gradients: tuple[str, ...]) -> Sequence[str]:
    pads = padding(view)
    if not pads_zeros(view) or any(min(pair) < 0 for pair in pads):
        view.fail("pads with something else than zeros, or cuts, which has no gradient in the engine")
    begins = [before for before, _ in pads]
    ends = [before + size for (before, _), size in zip(pads, view.shape(0), strict=True)]
    return [tape("Slice", gradients[0], tape.ints(begins), tape.ints(ends))]


def _expand(view: NodeView, tape: Tape, gradients: tuple[str, ...]) -> Sequence[str]:
    return [tape.sum_to(gradients[0], view.shape(0))]


GRADIENTS: dict[str, Gradient] = {
    "Concat": _concat,
    "Expand": _expand,
    "Flatten": _view,
    "Gather": _gather,
    "Identity": _identity,
    "Pad": _pad,
    "Reshape": _view,
    "Slice": _slice,
    "Split": _split,
    "Squeeze": _view,
    "Transpose": _transpose,
    "Unsqueeze": _view,
}
"""Operator → rule."""
