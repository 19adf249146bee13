"""Gradients of matrix products."""

from __future__ import annotations

from collections.abc import Sequence

from powerlab.engine.ops.gradients.base import Gradient, Tape
from powerlab.engine.ops.view import NodeView


def _swapped(tape: Tape, tensor: str) -> str:
    """Return a tensor with its last two axes swapped."""
    rank = len(tape.shape(tensor))
    return tape("Transpose", tensor, perm=(*range(rank - 2), rank - 1, rank - 2))


def _matmul(view: NodeView, tape: Tape, gradients: tuple[str, ...]) -> Sequence[str]:
    left, right = view.node.inputs
    left_shape, right_shape = view.shape(0), view.shape(1)
    # A vector on the left is a row, on the right a column.
    rows = left_shape if len(left_shape) > 1 else (1, *left_shape)
    columns = right_shape if len(right_shape) > 1 else (*right_shape, 1)
    made = gradients[0]
    if rows != left_shape or columns != right_shape:
        batch = tape.shape(made)[: max(len(rows), len(columns)) - 2]
        made = tape.reshape(made, (*batch, rows[-2], columns[-1]))
    found = ["", ""]
    if tape.wants(left):
        other = right if columns == right_shape else tape.reshape(right, columns)
        found[0] = tape.reshape(tape.sum_to(tape("MatMul", made, _swapped(tape, other)), rows), left_shape)
    if tape.wants(right):
        other = left if rows == left_shape else tape.reshape(left, rows)
        if len(columns) == 2 and len(rows) > 2:  # one product over all rows of the batch
            other, made = tape.reshape(other, (-1, rows[-1])), tape.reshape(made, (-1, columns[-1]))
        product = tape("MatMul", _swapped(tape, other), made)
        found[1] = tape.reshape(tape.sum_to(product, columns), right_shape)
    return found


def _gemm(view: NodeView, tape: Tape, gradients: tuple[str, ...]) -> Sequence[str]:
    left, right = view.node.inputs[:2]
    across_left, across_right = (view.integer(name, 0) for name in ("transA", "transB"))
    alpha, made = view.number("alpha", 1.0), gradients[0]
    found = ["", "", ""]
    if tape.wants(left):
        pair = (right, made) if across_left else (made, right)
        across = (across_right, 1) if across_left else (0, 1 - across_right)
        found[0] = tape("Gemm", *pair, alpha=alpha, transA=across[0], transB=across[1])
    if tape.wants(right):
        pair = (made, left) if across_right else (left, made)
        across = (1, across_left) if across_right else (1 - across_left, 0)
        found[1] = tape("Gemm", *pair, alpha=alpha, transA=across[0], transB=across[1])
    if view.has(2) and tape.wants(view.node.inputs[2]):
        summed, beta = tape.sum_to(made, view.shape(2)), view.number("beta", 1.0)
        found[2] = summed if beta == 1.0 else tape("Mul", summed, tape.floats(beta))
    return found


GRADIENTS: dict[str, Gradient] = {"Gemm": _gemm, "MatMul": _matmul}
"""Operator → rule."""
