"""BatchNormalization (inference form) and LRN."""

from __future__ import annotations

from powerlab.engine.operators.base import Operator, same_as_input
from powerlab.engine.operators.view import NodeView, Spec


def _batch_norm(view: NodeView) -> Spec:
    shape = view.floats(0)
    if len(shape) < 2:
        view.fail(f"needs an input with channels on its second axis, but it has the shape {shape}")
    if view.integer("training_mode", 0) or not view.integer("spatial", 1):
        view.fail("is in training or non-spatial mode; export the model for inference (model.eval())")
    for index in range(1, 5):
        if view.floats(index) != (shape[1],):
            view.fail(f"needs {shape[1]} values in input {index + 1}, but it has the shape {view.shape(index)}")
    return same_as_input(view)


def _lrn(view: NodeView) -> Spec:
    view.floats(0, 4)
    size = view.integer("size", 0)
    if not 1 <= size <= 65536:
        view.fail(f"has size {size}; it must be 1 or more")
    for name in ("alpha", "beta", "bias"):
        view.number(name, 0.0)
    return same_as_input(view)


BATCH_NORMALISATION = Operator(_batch_norm)
LRN = Operator(_lrn)
