"""Attention becomes two matrix products with a softmax between.

Sources: https://onnx.ai/onnx/operators/onnx__Attention.html, and for several heads of queries that share one of keys J.
Ainslie et al., "GQA: Training Generalized Multi-Query Transformer Models from Multi-Head Checkpoints" (2023).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from powerlab.engine.ir.graph import Graph, Node
from powerlab.engine.ops.attention import Heads, Input, Qk, heads_of
from powerlab.engine.ops.view import BOOL, NodeView
from powerlab.engine.passes.expand.expansion import Expansion
from powerlab.engine.passes.rewriting import Rewriter, rewrite_nodes


def _attention(view: NodeView, rewriter: Rewriter) -> Sequence[Node]:
    node, heads, add = view.node, heads_of(view), Expansion(view, rewriter)
    query = in_heads(add, node.inputs[0], heads.query_heads, heads.flat)
    key, value = (
        _with_past(add, view, in_heads(add, node.inputs[index], heads.key_heads, heads.flat), past, output)
        for index, past, output in ((Input.KEY, Input.PAST_KEY, 1), (Input.VALUE, Input.PAST_VALUE, 2))
    )
    scale = add.floats(math.sqrt(heads.scale))
    query = add("Mul", query, scale)
    turned = add("Mul", add("Transpose", key, perm=(0, 1, 3, 2)), scale)
    scores = _product(add, query, turned, heads)
    wanted = node.outputs[3] if len(node.outputs) > 3 else ""
    mode = view.integer("qk_matmul_output_mode", 0)
    bias = _bias(view, add, heads)
    stages = [scores]
    softcap = view.number("softcap", 0.0)
    if softcap:
        scores = add("Mul", add("Tanh", add("Div", scores, add.floats(softcap))), add.floats(softcap))
    stages.append(scores)
    if bias:
        scores = add("Add", scores, bias)
    stages.append(scores)
    weights = add("Softmax", scores, axis=-1, masked=1)
    stages.append(weights)
    if wanted:
        add("Identity", stages[_STAGES[Qk(mode)]], output=wanted)
    made = _product(add, weights, value, heads)
    if heads.flat:
        batch, _, length, width = add.shape(made)
        made = add.reshape(add("Transpose", made, perm=(0, 2, 1, 3)), (batch, length, heads.query_heads * width))
    return add.ending(made)


_STAGES = {Qk.PRODUCT: 0, Qk.CAPPED: 1, Qk.BIASED: 2, Qk.SOFTMAX: 3}


def in_heads(add: Expansion, tensor: str, heads: int, flat: bool) -> str:
    """Return (batch, heads, length, width)."""
    if not flat:
        return tensor
    batch, length, hidden = add.shape(tensor)
    return add("Transpose", add.reshape(tensor, (batch, length, heads, hidden // heads)), perm=(0, 2, 1, 3))


def _with_past(add: Expansion, view: NodeView, tensor: str, past: int, output: int) -> str:
    """Return keys or values behind those of the past, which is also an output where somebody reads that."""
    node = view.node
    joined = add("Concat", node.inputs[past], tensor, axis=2) if node.input(past) else tensor
    if len(node.outputs) > output and node.outputs[output]:
        add("Identity", joined, output=node.outputs[output])
    return joined


def _product(add: Expansion, left: str, right: str, heads: Heads) -> str:
    """Multiply head by head; several heads of queries may share one of keys."""
    if heads.query_heads == heads.key_heads:
        return add("MatMul", left, right)
    batch, _, rows, inner = add.shape(left)
    _, kept, _, columns = add.shape(right)
    group = heads.query_heads // kept
    wide = add.reshape(left, (batch, kept, group, rows, inner))
    made = add("MatMul", wide, add.reshape(right, (batch, kept, 1, inner, columns)))
    return add.reshape(made, (batch, heads.query_heads, rows, columns))


def _bias(view: NodeView, add: Expansion, heads: Heads) -> str:
    """Return what is added to the scores, -inf where nothing is to be seen; empty where there is nothing to add."""
    node = view.node
    parts = []
    if view.has(Input.MASK):
        mask = node.inputs[Input.MASK]
        missing = heads.keys - view.shape(Input.MASK)[-1]
        if view.dtype(Input.MASK) == BOOL:
            mask = add("Where", mask, add.floats(0.0), add.floats(-np.inf))
        if missing:
            outside = np.full((*view.shape(Input.MASK)[:-1], missing), -np.inf, np.float32)
            mask = add("Concat", mask, add.floats(outside), axis=-1)
        parts.append(mask)
    offsets = None
    if view.has(Input.LENGTHS):
        lengths = add.reshape(node.inputs[Input.LENGTHS], (heads.batch, 1, 1, 1))
        offsets = add("Sub", lengths, add.ints([heads.queries]))
        parts.append(_where(add, add("Less", add.whole(np.arange(heads.keys)), lengths)))
    parts += [_where(add, allowed) for allowed in _reach(view, add, heads, offsets)]
    bias = parts[0] if parts else ""
    for part in parts[1:]:
        bias = add("Add", bias, part)
    return bias


def _where(add: Expansion, allowed: str) -> str:
    return add("Where", allowed, add.floats(0.0), add.floats(-np.inf))


def _reach(view: NodeView, add: Expansion, heads: Heads, offsets: str | None) -> list[str]:
    """Return which keys each query may see, as far as causality and windows say: how far before and behind itself."""
    queries, keys = np.arange(heads.queries).reshape(-1, 1), np.arange(heads.keys)
    ahead = add.whole(keys - queries - (heads.past if offsets is None else 0))
    place = ahead if offsets is None else add("Sub", ahead, offsets)
    limits = []
    if view.integer("is_causal", 0):
        limits.append(add("LessOrEqual", place, add.ints([0])))
    if (right := view.integer("right_window_size", -1)) >= 0:
        limits.append(add("LessOrEqual", place, add.ints([right])))
    if (left := view.integer("left_window_size", -1)) >= 0:
        limits.append(add("GreaterOrEqual", place, add.ints([-left])))
    return limits


def expand_attention(graph: Graph) -> Graph:
    """Return the graph without Attention."""
    return rewrite_nodes(graph, {"Attention": _attention})
