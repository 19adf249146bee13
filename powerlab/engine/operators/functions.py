"""Functions of one number: Sigmoid, Tanh, Exp, Erf, Gelu, HardSigmoid, HardSwish, Elu."""

from __future__ import annotations

from powerlab.engine.operators.base import Operator
from powerlab.engine.operators.view import NodeView, Spec


def _infer(view: NodeView) -> Spec:
    return view.floats(0), view.dtype(0)


def _gelu(view: NodeView) -> Spec:
    if view.text("approximate", "none") != "none":
        view.fail(f"approximates by {view.text('approximate', 'none')!r}; the engine computes the exact function only")
    return _infer(view)


FUNCTION = Operator(_infer)
GELU = Operator(_gelu)

PARAMETERS: dict[str, dict[str, float]] = {"Elu": {"alpha": 1.0}, "HardSigmoid": {"alpha": 0.2, "beta": 0.5}}
"""Operator → its numbers with what ONNX says where they are left out."""
