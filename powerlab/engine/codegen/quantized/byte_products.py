"""Products of two quantized matrices, as in attention: on bytes, where these multiply faster than floats.

An optimised graph has such a product on floats that were rounded to bytes and back, which every processor computes.
Here it becomes one of what was rounded, which its own steps round: ``matmul_u8`` and what comes before it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from powerlab.engine.codegen.attributes import number
from powerlab.engine.codegen.builder import Builder
from powerlab.engine.ir.graph import Graph, Node
from powerlab.engine.passes.fuse.transposes import fuse_transposes
from powerlab.engine.passes.simplify.dead_nodes import drop_dead
from powerlab.engine.program.layout import WORD_BYTES, divide_up
from powerlab.engine.program.operand import Operand
from powerlab.engine.target.tiers import Tier

FASTER = {"avx512amx", "avx512vnni", "avxvnni", "neon_i8mm", "neon_dotprod"}
"""Instruction sets that multiply bytes faster than floats."""

_LEVELS = {(0, 255): 0, (-128, 127): 128}
"""The least and the most integer of a quantization -> what makes it unsigned."""

_MIDDLE = 128
_LONGEST = (2**31 - 1) // (2 * 255 * 127)
"""Of the inner axis: sums, and what they begin with, are integers of 32 bits."""

_STEPS = ("left_step", "left_zero", "right_step")


class _Rounded(Struct, frozen=True):
    """What was rounded to bytes and back: unsigned bytes q stand for step * (q - zero)."""

    source: str
    step: float
    zero: int


def with_byte_products(graph: Graph, tier: Tier) -> Graph:
    """Return an optimised graph with products of quantized matrices on bytes, where a tier has them faster."""
    if tier.bytes not in FASTER:
        return graph
    producers, found = graph.producers(), False
    nodes = []
    for node in graph.nodes:
        made = _of_bytes(graph, producers, node) if node.op_type == "Product" else None
        found |= made is not None
        nodes.append(made or node)
    return fuse_transposes(drop_dead(fuse_transposes(graph.rewritten(nodes)))) if found else graph


def is_of_bytes(node: Node) -> bool:
    """Tell whether a Product is one on bytes."""
    return _STEPS[0] in node.attributes


def _of_bytes(graph: Graph, producers: Mapping[str, Node], node: Node) -> Node | None:
    left, right = (_rounded(graph, producers, name) for name in node.inputs)
    if left is None or right is None or right.zero != _MIDDLE:
        return None
    order = node.attributes["left"]
    inner = graph.shape(node.inputs[0])[order[-1] if isinstance(order, tuple) and order else -1]
    if inner > _LONGEST:
        return None
    steps = dict(zip(_STEPS, (left.step, left.zero, right.step), strict=True))
    return replace(node, inputs=(left.source, right.source), attributes={**node.attributes, **steps})


def _rounded(graph: Graph, producers: Mapping[str, Node], name: str) -> _Rounded | None:
    back = producers.get(name)
    if back is not None and back.op_type == "FakeQuantize":
        return _Rounded(back.inputs[0], number(back, "alpha"), int(number(back, "beta")))
    if back is None or back.attributes.get("kernel") != "dequantize_strided_i64":
        return None
    rounding = producers.get(back.inputs[0])
    if rounding is None or rounding.attributes.get("kernel") != "quantize_strided_f32":
        return None
    scales = [_number(graph, one.inputs[1]) for one in (back, rounding)]
    zeros = [_number(graph, one.inputs[2]) for one in (back, rounding)]
    limits = rounding.attributes["numbers"]
    offset = _LEVELS.get(tuple(limits[2:])) if isinstance(limits, tuple) else None
    if offset is None or scales[0] is None or zeros[0] is None or scales[0] != scales[1] or zeros[0] != zeros[1]:
        return None
    return _Rounded(rounding.inputs[0], scales[0], int(zeros[0]) + offset)


def _number(graph: Graph, name: str) -> float | None:
    """Return the value of a constant that is one number."""
    if name not in graph.kept_constants or math.prod(graph.shape(name)) != 1:
        return None
    return float(graph.constants[name].reshape(()))


def byte_sides(builder: Builder, node: Node, left: Operand, right: Operand) -> tuple[Operand, Operand]:
    """Append the steps that round the sides of a product on bytes; return its bytes and its packed right side."""
    label, width = node.name or node.outputs[0], builder.tier.vector_width
    *batch, inner, columns = right.sizes
    halves = 2 if builder.tier.widens_bytes else 1
    words, zero = divide_up(inner, WORD_BYTES), int(number(node, "left_zero"))
    rows = builder.room((*left.sizes[:-1], divide_up(inner, width) * width // WORD_BYTES))
    builder.emit_general("quantize_matrix", f"{label} bytes", (rows, left), (zero,), alpha=number(node, "left_step"))
    packed, step = builder.room((*batch, 1, _packed_floats(words * halves, columns, width))), number(node, "right_step")
    builder.emit_general("pack_matrix_s8", f"{label} packed", (packed, right), (zero,), alpha=step)
    return rows, packed


def _packed_floats(words: int, columns: int, width: int) -> int:
    """Return the size of packed columns: for each a float a word, and the integer its sums begin with."""
    return divide_up(columns, width) * width * (words + 1)


def byte_factor(node: Node) -> float:
    """Return what the sums of a product on bytes are multiplied by."""
    return number(node, "left_step") * number(node, "right_step") * number(node, "alpha")
