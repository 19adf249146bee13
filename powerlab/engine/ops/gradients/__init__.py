"""Gradients of operators, in the operators of ONNX: one file a family, as their shapes have.

A new one is a rule in a family's file and a line in its table; :data:`powerlab.engine.ops.OPERATORS` has it beside the
operator's shape.
"""

from __future__ import annotations

from powerlab.engine.ops.gradients import (
    convolution,
    elementwise,
    functions,
    matrix,
    moving,
    normalisation,
    pooling,
    reducing,
    resizing,
)
from powerlab.engine.ops.gradients.base import Gradient

GRADIENTS: dict[str, Gradient] = {
    **convolution.GRADIENTS,
    **elementwise.GRADIENTS,
    **functions.GRADIENTS,
    **matrix.GRADIENTS,
    **moving.GRADIENTS,
    **normalisation.GRADIENTS,
    **pooling.GRADIENTS,
    **reducing.GRADIENTS,
    **resizing.GRADIENTS,
}
"""Operator → rule."""
