"""LayerNormalization and RMSNormalization."""

from __future__ import annotations

from powerlab.engine.ops.base import Operator
from powerlab.engine.ops.view import FLOAT32, NodeView, Spec


def first_axis(view: NodeView) -> int:
    """Return the first axis that is normalised; all behind it are too."""
    return view.axis(view.integer("axis", -1), len(view.floats(0)))


def _norm(view: NodeView) -> Spec:
    shape = view.floats(0)
    first_axis(view)
    view.number("epsilon", 1e-5)
    for index in range(1, len(view.infos)):
        if view.has(index) and not _fits(view.floats(index), shape):
            view.fail(f"scales or shifts the shape {shape} by {view.shape(index)}, which does not fit")
    return shape, FLOAT32


def _fits(own: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    """Say whether a tensor is broadcast to a shape that stays as it is."""
    sizes = zip(own[::-1], shape[::-1], strict=False)
    return len(own) <= len(shape) and all(size in (1, whole) for size, whole in sizes)


def _moments(view: NodeView) -> tuple[Spec, ...]:
    """Return the mean and the inverse deviation, one a row."""
    shape, axis = view.shape(0), first_axis(view)
    spec = ((*shape[:axis], *(1,) * (len(shape) - axis)), FLOAT32)
    return spec, spec


LAYER_NORMALISATION = Operator(_norm, infer_more=_moments)
RMS_NORMALISATION = Operator(_norm)
