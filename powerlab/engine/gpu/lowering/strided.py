"""Copies and functions of two numbers over general tensors, element by element."""

from __future__ import annotations

import math

from powerlab.domain.errors import PowerlabError
from powerlab.engine.gpu.builder import Builder
from powerlab.engine.ir.graph import Node
from powerlab.engine.program.operand import Operand, joined

OPERATIONS = {
    "copy": 0,
    "add": 1,
    "sub": 2,
    "mul": 3,
    "div": 4,
    "max": 5,
    "min": 6,
    "prelu": 7,
    "pow": 8,
    "is_nan": 9,
    "where": 10,
    "equal": 11,
    "less": 12,
    "greater": 13,
    "mul_add": 14,
    "less_or_equal": 15,
    "not_equal": 16,
    "is_zero": 17,
    "is_not_zero": 18,
}
"""Stem of the CPU's kernel → its code in ``shaders/strided.comp``."""

_MOST_OPERANDS = 3

_AXES = 5

_MOST_PIECES = 64
"""Dispatches that a move along more axes than a kernel takes may be."""


def emit_strided(
    builder: Builder, label: str | Node, operation: str, out: Operand, operands: tuple[Operand, ...]
) -> None:
    """Append a dispatch that makes every element of ``out``; its one to three operands broadcast to its sizes.

    Of more axes than a kernel takes the shortest are gone along by a dispatch for each place.

    Raises:
        PowerlabError: the operands have more axes than a kernel takes, after neighbours are joined.
    """
    filled = (*operands, *(operands[-1] for _ in range(_MOST_OPERANDS - len(operands))))
    views = joined([out, *(one.broadcast(out.sizes) for one in filled)])
    sizes = views[0].sizes
    axes = len(sizes)
    if math.prod(sorted(sizes)[: max(0, axes - _AXES)]) > _MOST_PIECES:
        raise PowerlabError(
            f"{label} moves along {axes} axes, and on a GPU the engine does along {_AXES}; use the cpu."
        )
    if axes > _AXES:
        shortest = sizes.index(min(sizes))
        for place in range(sizes[shortest]):
            made, *rest = (one.sliced(shortest, place, 1) for one in views)
            emit_strided(builder, label, operation, made, tuple(rest))
        return
    fill = _AXES - axes
    count = math.prod(sizes)
    builder.emit_flat(
        "strided",
        label,
        [one.storage for one in views],
        count,
        constants=(OPERATIONS[operation], axes),
        push=(
            *((1,) * fill + sizes),
            *(stride for one in views for stride in (0,) * fill + one.strides),
            *(one.offset for one in views),
            count,
        ),
    )


def copy(builder: Builder, label: str | Node, out: Operand, x: Operand) -> None:
    """Append a copy between two views."""
    emit_strided(builder, label, "copy", out, (x,))
