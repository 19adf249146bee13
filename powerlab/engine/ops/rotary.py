"""RotaryEmbedding, https://onnx.ai/onnx/operators/onnx__RotaryEmbedding.html."""

from __future__ import annotations

from powerlab.engine.ops.attention import heads_shape
from powerlab.engine.ops.base import Operator, same_as_input
from powerlab.engine.ops.view import NodeView, Spec


def rotated_width(view: NodeView) -> int:
    """Return how many numbers of a head RotaryEmbedding turns."""
    width = heads_shape(view, 0, "num_heads")[3]
    return view.integer("rotary_embedding_dim", 0) or width


def _rotary(view: NodeView) -> Spec:
    batch, _, length, width = heads_shape(view, 0, "num_heads")
    rotated = rotated_width(view)
    for index in (1, 2):
        shape = view.floats(index, 2 if view.has(3) else 3)
        whole = shape[-1:] if view.has(3) else shape
        if rotated % 2 or rotated > width or whole not in ((rotated // 2,), (batch, length, rotated // 2)):
            view.fail(f"turns {rotated} of {width} numbers by angles of the shape {shape}, which do not fit")
    if view.has(3) and (view.shape(3) != (batch, length) or view.dtype(3).kind not in "iu"):
        view.fail("needs an integer for each place in input 4")
    return same_as_input(view)


ROTARY_EMBEDDING = Operator(_rotary)
