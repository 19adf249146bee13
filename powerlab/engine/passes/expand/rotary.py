"""RotaryEmbedding becomes sums of products: pairs of numbers are turned by the angle of their place.

Source: J. Su et al., "RoFormer: Enhanced Transformer with Rotary Position Embedding" (2021), and
https://onnx.ai/onnx/operators/onnx__RotaryEmbedding.html.
"""

from __future__ import annotations

from collections.abc import Sequence

from powerlab.engine.ir.graph import Graph, Node
from powerlab.engine.ops.rotary import rotated_width
from powerlab.engine.ops.view import NodeView
from powerlab.engine.passes.expand.attention import in_heads
from powerlab.engine.passes.expand.expansion import Expansion
from powerlab.engine.passes.rewriting import Rewriter, rewrite_nodes


def _rotary(view: NodeView, rewriter: Rewriter) -> Sequence[Node]:
    node, add = view.node, Expansion(view, rewriter)
    shape, source = view.shape(0), node.inputs[0]
    if len(shape) == 3:
        heads = view.integer("num_heads", 0)
        source = in_heads(add, source, heads, True)
    batch, heads, length, width = add.shape(source)
    rotated = rotated_width(view)
    half = rotated // 2
    cosine, sine = (
        add.reshape(add("Gather", cache, node.inputs[3]) if node.input(3) else cache, (-1, 1, length, half))
        for cache in node.inputs[1:3]
    )
    turned = _cut(add, source, 0, rotated)
    if view.integer("interleaved", 0):
        pairs = add.reshape(turned, (batch, heads, length, half, 2))
        first, second = (add.reshape(_cut(add, pairs, at, at + 1), (batch, heads, length, half)) for at in (0, 1))
    else:
        first, second = _cut(add, turned, 0, half), _cut(add, turned, half, rotated)
    real = add("Sub", add("Mul", cosine, first), add("Mul", sine, second))
    imaginary = add("Add", add("Mul", sine, first), add("Mul", cosine, second))
    if view.integer("interleaved", 0):
        parts = [add.reshape(part, (batch, heads, length, half, 1)) for part in (real, imaginary)]
        made = add.reshape(add("Concat", *parts, axis=-1), (batch, heads, length, rotated))
    else:
        made = add("Concat", real, imaginary, axis=-1)
    if rotated < width:
        made = add("Concat", made, _cut(add, source, rotated, width), axis=-1)
    if len(shape) == 3:
        made = add.reshape(add("Transpose", made, perm=(0, 2, 1, 3)), shape)
    return add.ending(made)


def _cut(add: Expansion, tensor: str, begin: int, end: int) -> str:
    """Return elements of the last axis."""
    if (begin, end) == (0, add.shape(tensor)[-1]):
        return tensor
    return add("Slice", tensor, add.ints([begin]), add.ints([end]), add.ints([-1]))


def expand_rotary(graph: Graph) -> Graph:
    """Return the graph without RotaryEmbedding."""
    return rewrite_nodes(graph, {"RotaryEmbedding": _rotary})
