"""Attention: a product, its softmax and a second product, found in the graph and computed by one kernel."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from powerlab.engine.codegen.attributes import integers, number
from powerlab.engine.gpu.activations import PLAIN, finish_of
from powerlab.engine.gpu.builder import Builder
from powerlab.engine.gpu.choice.attention import AT_A_TIME, Kernel, Size, by_matrices
from powerlab.engine.gpu.lowering.product import batch_axes, side
from powerlab.engine.gpu.target import Target
from powerlab.engine.ir.graph import Graph, Node
from powerlab.engine.program.operand import Operand, compact_strides

_GPU_LANES, _ROWS, _LEAST_ROWS = 64, 8, 2
_INNER, _MOST_INNER, _MOST_WIDTH = 64, 256, 128


class Attention(Struct, frozen=True):
    """Nodes that are one: ``products`` make scores and the result.

    Attributes:
        products: the first one and the second.
        mask: the name of what is added to the scores, or nothing.
        zeros: whether a row of nothing but minus infinity becomes zeros.
        between: the nodes between the products.
        after: a Transpose that alone reads the result, which is written in its order then.
    """

    products: tuple[Node, Node]
    mask: str
    zeros: bool
    between: tuple[Node, ...]
    after: Node | None

    @property
    def before(self) -> tuple[Node, ...]:
        """Return the nodes in front of the second product, none of which is computed by itself."""
        return self.products[0], *self.between

    @property
    def covered(self) -> tuple[Node, ...]:
        """Return all nodes but the second product that are not computed by themselves."""
        return (*self.before, self.after) if self.after else self.before


def find_attentions(graph: Graph) -> list[Attention]:
    """Return every attention of a graph whose sizes the kernel takes and whose scores nobody else reads.

    Where the result of one is the scores of the next, the first has it.
    """
    found: list[Attention] = []
    taken: set[str] = set()
    for node in graph.nodes:
        one = _around(graph, node) if node.op_type == "Softmax" else None
        names = {part.outputs[0] for part in (*one.covered, *one.products)} if one is not None else set()
        if one is not None and taken.isdisjoint(names):
            found.append(one)
            taken |= names
    return found


def _around(graph: Graph, softmax: Node) -> Attention | None:
    consumers, producers, outputs = graph.consumers(), graph.producers(), graph.output_names()

    def reader(name: str) -> Node | None:
        """Return the only node that reads a tensor."""
        readers = consumers[name]
        return readers[0] if len(readers) == 1 and name not in outputs else None

    shape = graph.shape(softmax.inputs[0])
    if int(number(softmax, "axis")) % len(shape) != len(shape) - 1:
        return None
    before: tuple[Node, ...] = ()
    first, mask = producers.get(softmax.inputs[0]), ""
    if first is not None and _adds(first):
        sides = [(producers.get(name), other) for name, other in zip(first.inputs, first.inputs[::-1], strict=True)]
        before = (first,)
        first, mask = next(((one, other) for one, other in sides if one and one.op_type == "Product"), (None, ""))
    zeros, scores = bool(softmax.attributes.get("masked", 0)), softmax.outputs[0]
    after = _without_nan(graph, consumers[scores]) if scores not in outputs else ()
    if after:
        zeros, scores = True, after[-1].outputs[0]
    second = reader(scores)
    if first is None or second is None or first.op_type != "Product" or second.op_type != "Product":
        return None
    alone = all(reader(node.outputs[0]) is not None for node in (first, *before))
    as_left = second.inputs[0] == scores != second.inputs[1] and not second.attributes["left"]
    inner = graph.shape(second.outputs[0])[-1] <= _MOST_WIDTH and _inner(graph, first) <= _MOST_INNER
    if not (alone and as_left and inner):
        return None
    moved = reader(second.outputs[0])
    between = (*before, softmax, *after)
    return Attention((first, second), mask, zeros, between, moved if moved and moved.op_type == "Transpose" else None)


def _adds(node: Node) -> bool:
    """Tell whether a node is a plain sum of two."""
    if node.op_type == "Elementwise":
        return node.attributes["kernel"] == "add_strided_f32"
    return node.op_type == "Add" and finish_of(node) == PLAIN


def _without_nan(graph: Graph, readers: Sequence[Node]) -> tuple[Node, ...]:
    """Return the nodes that put 0 for what is not a number, if these readers of a tensor do."""
    tests = [node for node in readers if node.attributes.get("kernel") == "is_nan_strided_f32"]
    puts = [node for node in readers if node.attributes.get("kernel") == "where_strided_f32"]
    if len(readers) != 2 or len(tests) != 1 or len(puts) != 1:
        return ()
    (test,), (put,) = tests, puts
    zero = graph.constants.get(put.inputs[1])
    alone = len(graph.consumers()[test.outputs[0]]) == 1 and put.inputs[0] == test.outputs[0]
    return (test, put) if alone and put.inputs[2] == test.inputs[0] and zero is not None and not zero.any() else ()


def _inner(graph: Graph, product: Node) -> int:
    shape, order = graph.shape(product.inputs[0]), product.attributes["left"]
    return shape[order[-1]] if order else shape[-1]  # type: ignore[index]


def lower_attention(builder: Builder, attention: Attention) -> bool:
    """Append the kernel; return False, having appended nothing, where the batch has more axes than it takes."""
    first, second = attention.products
    q, k, v = side(builder, first, 0), side(builder, first, 1), side(builder, second, 1)
    (rows, inner), keys, width = q.sizes[-2:], k.sizes[-1], v.sizes[-1]
    shape, made = builder.graph.shape(second.outputs[0]), attention.after or second
    order = np.argsort(integers(made, "perm")) if attention.after else range(len(shape))

    def ordered(result: Operand) -> Operand:
        return result.permuted(tuple(map(int, order)))

    mask = builder.operand(attention.mask).broadcast((*shape[:-2], rows, keys)) if attention.mask else None
    parts = [q, k, v, *([mask] if mask else [])]
    batch = batch_axes([*parts, ordered(_like(builder.graph.shape(made.outputs[0]), q))], shape[:-2])
    if batch is None:
        return False
    sizes, strides = batch
    out = ordered(builder.new_operand(made.outputs[0]))
    q_batch, k_batch, v_batch, *mask_batch, out_batch = strides
    size = Size(rows=rows, inner=inner, width=width, batch=sizes[0] * sizes[1])
    ends = (int(mask is not None), int(attention.zeros))
    steps = (*q_batch, q.strides[-2], *k_batch, k.strides[-1], *v_batch, v.strides[-2])
    side_by_side = q.strides[-1] == k.strides[-2] == v.strides[-1] == 1
    wide = side_by_side and not any(one % AT_A_TIME for one in (*steps, inner, width))
    tile = by_matrices(size, builder.target) if builder.half and not builder.target.broadcasts else None
    kernel = tile.kernel(ends, wide=wide) if tile else _by_lanes(size, builder.target, ends)
    builder.emit(
        kernel.name,
        second,
        [one.storage for one in (out, q, k, v, mask or q)],
        constants=kernel.constants,
        push=(
            *(number(first, "alpha"), number(second, "alpha")),
            *(rows, keys, inner, width, sizes[-1]),
            *(*q_batch, *q.strides[-2:], *k_batch, *k.strides[-2:], *v_batch, *v.strides[-2:]),
            *((*mask_batch[0], *mask.strides[-2:]) if mask else (0,) * 4),
            *(*out_batch, *out.strides[-2:]),
        ),
        groups=(-(-rows // kernel.rows), size.batch, 1),
        covered=attention.covered,
    )
    return True


def _by_lanes(size: Size, target: Target, ends: tuple[int, int]) -> Kernel:
    """Return the kernel whose lanes multiply: on a GPU with fewer queries a work group where they would not fill it."""
    each = _ROWS
    while not target.broadcasts and each > _LEAST_ROWS and -(-size.rows // each) * size.batch < 2 * target.cores:
        each //= 2
    lanes = target.lanes(_GPU_LANES)
    sizes = (each, -(-size.inner // _INNER) * _INNER, -(-size.width // lanes))
    return Kernel("attention", each, (lanes, *sizes, *ends, lanes, int(target.broadcasts)))


def _like(shape: tuple[int, ...], operand: Operand) -> Operand:
    """Return a compact tensor of a shape, wherever it may lie."""
    return replace(operand, sizes=shape, strides=compact_strides(shape), offset=0)
