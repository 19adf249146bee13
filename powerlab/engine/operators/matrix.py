"""Gemm and MatMul."""

from __future__ import annotations

from powerlab.engine.operators.base import Operator
from powerlab.engine.operators.view import FLOAT32, NodeView, Spec


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


def _matmul(view: NodeView) -> Spec:
    left, right = view.floats(0), view.floats(1)
    if len(left) < 2 or len(right) != 2:
        view.fail(f"multiplies shapes {left} and {right}; the engine takes a matrix of two axes on the right")
    if left[-1] != right[0]:
        view.fail(f"multiplies shapes {left} and {right}, which do not fit")
    return (*left[:-1], right[1]), FLOAT32


GEMM = Operator(_gemm)
MATMUL = Operator(_matmul)
