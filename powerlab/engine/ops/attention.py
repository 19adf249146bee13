"""Attention, https://onnx.ai/onnx/operators/onnx__Attention.html."""

from __future__ import annotations

import math
from enum import IntEnum

from msgspec import Struct

from powerlab.engine.ops.base import Operator
from powerlab.engine.ops.broadcasting import broadcast_shapes
from powerlab.engine.ops.view import BOOL, FLOAT32, INT64, NodeView, Spec


class Input(IntEnum):
    """The inputs of Attention after the queries."""

    KEY = 1
    VALUE = 2
    MASK = 3
    PAST_KEY = 4
    PAST_VALUE = 5
    LENGTHS = 6


class Qk(IntEnum):
    """What the output ``qk_matmul_output`` shows of the scores."""

    PRODUCT = 0
    CAPPED = 1
    BIASED = 2
    SOFTMAX = 3


class Heads(Struct, frozen=True):
    """The sizes of an Attention.

    Attributes:
        flat: whether all heads of a place lie in one row: the inputs have three axes.
        batch: sequences.
        query_heads: heads of queries; ``key_heads`` those of keys and values.
        queries: places of queries; ``keys`` those of keys, the ``past`` ones among them.
        value_width: numbers a head of values.
        scale: factor of the scores.
    """

    flat: bool
    batch: int
    query_heads: int
    key_heads: int
    queries: int
    keys: int
    past: int
    value_width: int
    scale: float


def heads_shape(view: NodeView, index: int, attribute: str) -> tuple[int, ...]:
    """Return an input's shape as (batch, heads, length, width)."""
    shape = view.floats(index)
    if len(shape) == 4:
        return shape
    heads = view.integer(attribute, 0)
    if len(shape) != 3 or heads < 1 or shape[2] % heads:
        view.fail(f"has an input of the shape {shape}, of which {attribute} = {heads} makes no heads")
    return shape[0], heads, shape[1], shape[2] // heads


def heads_of(view: NodeView) -> Heads:
    """Return the sizes of an Attention node.

    Raises:
        PowerlabError: they do not fit together.
    """
    query = heads_shape(view, 0, "q_num_heads")
    key, value = (heads_shape(view, index, "kv_num_heads") for index in (Input.KEY, Input.VALUE))
    ranks = {len(view.shape(index)) for index in range(3)}
    past = view.floats(Input.PAST_KEY, 4)[2] if view.has(Input.PAST_KEY) else 0
    fits = (
        len(ranks) == 1
        and query[0] == key[0] == value[0]
        and key[1:3] == value[1:3]
        and query[3] == key[3]
        and query[1] % key[1] == 0
        and view.has(Input.PAST_KEY) == view.has(Input.PAST_VALUE)
        and not (past and view.has(Input.LENGTHS))
    )
    if past:
        fits = fits and (*key[:2], past, key[3]) == view.shape(Input.PAST_KEY)
        fits = fits and (*value[:2], past, value[3]) == view.floats(Input.PAST_VALUE)
    if not fits:
        shapes = " and ".join(str(view.shape(index)) for index in range(3))
        view.fail(f"attends with the shapes {shapes}, which do not fit")
    scale = view.number("scale", 1 / math.sqrt(query[3]))
    if scale < 0:
        view.fail(f"scales by {scale}; it must be above 0")
    return Heads(len(view.shape(0)) == 3, query[0], query[1], key[1], query[2], past + key[2], past, value[3], scale)


def _attention(view: NodeView) -> Spec:
    heads = heads_of(view)
    _check_options(view)
    _check_mask(view, heads)
    if view.has(Input.LENGTHS) and (view.shape(Input.LENGTHS), view.dtype(Input.LENGTHS)) != ((heads.batch,), INT64):
        view.fail("needs one integer a sequence in input 7")
    if heads.flat:
        return (heads.batch, heads.queries, heads.query_heads * heads.value_width), FLOAT32
    return (heads.batch, heads.query_heads, heads.queries, heads.value_width), FLOAT32


def _check_options(view: NodeView) -> None:
    if view.integer("is_causal", 0) not in (0, 1):
        view.fail(f"has is_causal {view.integer('is_causal', 0)}, which must be 0 or 1")
    if view.integer("softmax_precision", 1) not in (0, 1, 10, 11, 16):
        view.fail("computes its softmax in a type that is no float")
    if view.integer("qk_matmul_output_mode", 0) not in tuple(Qk):
        view.fail("has a qk_matmul_output_mode that is not 0 to 3")
    if view.number("softcap", 0.0) < 0:
        view.fail("caps its scores below 0")


def _check_mask(view: NodeView, heads: Heads) -> None:
    if not view.has(Input.MASK):
        return
    shape = view.shape(Input.MASK)
    if view.dtype(Input.MASK) not in (BOOL, FLOAT32) or not shape or shape[-1] > heads.keys:
        view.fail(f"has a mask of {view.dtype(Input.MASK)} and the shape {shape}, which does not fit")
    whole = (heads.batch, heads.query_heads, heads.queries, heads.keys)
    if broadcast_shapes(view, [(*shape[:-1], heads.keys), whole]) != whole:
        view.fail(f"has a mask of the shape {shape}, which does not fit {whole}")


def _more(view: NodeView) -> tuple[Spec, ...]:
    """Return the keys and values so far, and the scores."""
    heads = heads_of(view)
    width = heads_shape(view, Input.KEY, "kv_num_heads")[3]
    return (
        ((heads.batch, heads.key_heads, heads.keys, width), FLOAT32),
        ((heads.batch, heads.key_heads, heads.keys, heads.value_width), FLOAT32),
        ((heads.batch, heads.query_heads, heads.queries, heads.keys), FLOAT32),
    )


ATTENTION = Operator(_attention, infer_more=_more)
