"""Gradients of what moves elements and computes nothing: views, transposes, concatenations, slices."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from powerlab.engine.ops.gradients.base import Gradient, Tape
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


def _expand(view: NodeView, tape: Tape, gradients: tuple[str, ...]) -> Sequence[str]:
    return [tape.sum_to(gradients[0], view.shape(0))]


GRADIENTS: dict[str, Gradient] = {
    "Concat": _concat,
    "Expand": _expand,
    "Flatten": _view,
    "Identity": _identity,
    "Reshape": _view,
    "Squeeze": _view,
    "Transpose": _transpose,
    "Unsqueeze": _view,
}
"""Operator → rule."""
