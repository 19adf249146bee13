"""Gradients of operators, in the operators of ONNX: one file a family, as their shapes have.

A new one is a rule in a family's file and a line in its table; :data:`powerlab.engine.ops.OPERATORS` has it beside the
operator's shape.
"""

from __future__ import annotations

from powerlab.engine.ops.gradients import elementwise, functions, matrix, moving, reducing
from powerlab.engine.ops.gradients.base import Gradient

GRADIENTS: dict[str, Gradient] = {
    **elementwise.GRADIENTS,
    **functions.GRADIENTS,
    **matrix.GRADIENTS,
    **moving.GRADIENTS,
    **reducing.GRADIENTS,
}
"""Operator → rule."""
