"""Gemm and MatMul."""

from __future__ import annotations

import numpy as np

from powerlab.engine.ir.graph import Array
from powerlab.engine.ops.base import Operator
from powerlab.engine.ops.broadcasting import broadcast_shapes
from powerlab.engine.ops.view import FLOAT32, NodeView, Spec


def _gemm(view: NodeView) -> Spec:
    left, right = view.floats(0, 2), view.floats(1, 2)
    rows, inner = left[::-1] if view.integer("transA", 0) else left
    inner_right, columns = right[::-1] if view.integer("transB", 0) else right
    if inner != inner_right:
        view.fail(f"multiplies shapes {left} and {right}, which do not fit")
    if view.has(2):
        bias = view.floats(2)
        padded = (1,) * (2 - len(bias)) + bias
        if len(padded) != 2 or padded[0] not in (1, rows) or padded[1] not in (1, columns):
            view.fail(f"adds the shape {bias} to ({rows}, {columns}), which do not fit")
    view.number("alpha", 1.0)
    view.number("beta", 1.0)
    return (rows, columns), FLOAT32


def _gemm_value(view: NodeView) -> Array:
    left, right = view.value(0), view.value(1)
    left, right = left.T if view.integer("transA", 0) else left, right.T if view.integer("transB", 0) else right
    product = np.float32(view.number("alpha", 1.0)) * (left @ right)
    return product + np.float32(view.number("beta", 1.0)) * view.value(2) if view.has(2) else product


def _matmul(view: NodeView) -> Spec:
    left, right = view.floats(0), view.floats(1)
    if not left or not right:
        view.fail("multiplies a single number; it takes vectors and matrices")
    inner = right[-2] if len(right) > 1 else right[0]
    if left[-1] != inner:
        view.fail(f"multiplies shapes {left} and {right}, which do not fit")
    rows, columns = left[-2:-1], right[-1:] if len(right) > 1 else ()
    return (*broadcast_shapes(view, [left[:-2], right[:-2]]), *rows, *columns), FLOAT32


GEMM = Operator(_gemm, _gemm_value)
MATMUL = Operator(_matmul, lambda view: np.matmul(view.value(0), view.value(1)))
