"""Reductions over axes, and what goes along one."""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec.structs import replace

from powerlab.domain.errors import PowerlabError
from powerlab.engine.codegen.attributes import integers, number
from powerlab.engine.gpu.builder import Builder
from powerlab.engine.gpu.recorder import LANES, MOST_GROUPS
from powerlab.engine.ir.graph import Node
from powerlab.engine.program.operand import Operand, joined

FUNCTIONS = {"sum": 0, "mean": 1, "max": 2, "min": 3, "prod": 4, "l2": 5}
"""Function of a Reduce → its code in ``shaders/reduce.comp``."""

_AXES = 3
_WIDE = 256
"""From so many numbers of a result on, the lanes of a work group share them on a GPU."""


def lower_reduce(builder: Builder, node: Node) -> None:
    """Lower a Reduce.

    Raises:
        PowerlabError: there is no such function on a GPU, or there are more axes than the kernel takes.
    """
    function, axes = str(node.attributes["function"]), integers(node, "axes")
    if function not in FUNCTIONS:
        raise PowerlabError(
            f"{node} reduces by {function!r}, which the engine does not on a GPU yet; use the device cpu."
        )
    x, out = builder.operand(node.inputs[0]), builder.new_rows(node.outputs[0])
    kept = _joined(x, [axis for axis in range(len(x.sizes)) if axis not in axes])
    reduced = _joined(x, axes)
    if max(len(kept.sizes), len(reduced.sizes)) > _AXES:
        raise PowerlabError(f"{node} reduces over axes that lie too far apart for the engine on a GPU; use the cpu.")
    count = math.prod(kept.sizes)
    push = (*_filled(kept), *_filled(reduced), count)
    if builder.target.broadcasts or math.prod(reduced.sizes) < _WIDE:
        builder.emit_flat("reduce", node, (out, x.storage), count, constants=(FUNCTIONS[function],), push=push)
        return
    across = min(count, MOST_GROUPS)
    builder.emit(
        "reduce_wide",
        node,
        (out, x.storage),
        constants=(LANES, FUNCTIONS[function]),
        push=push,
        groups=(across, -(-count // across), 1),
    )


def lower_cumulative_sum(builder: Builder, node: Node) -> None:
    """Lower a CumSum."""
    _along(builder, node, "cumulative_sum", ("exclusive", "reverse"))


def lower_arg_most(builder: Builder, node: Node) -> None:
    """Lower an ArgMost, ArgMax or ArgMin of ONNX."""
    _along(builder, node, "arg_most", ("last", "largest"))


def _along(builder: Builder, node: Node, kernel: str, flags: Sequence[str]) -> None:
    """Append a dispatch that goes along an axis, a line an invocation."""
    shape, axis = builder.graph.shape(node.inputs[0]), int(number(node, "axis"))
    size, inner = shape[axis], math.prod(shape[axis + 1 :])
    lines = math.prod(shape[:axis]) * inner
    x, out = builder.rows(node.inputs[0]), builder.new_rows(node.outputs[0])
    constants = [int(number(node, name)) for name in flags]
    builder.emit_flat(kernel, node, (out, x), lines, constants=constants, push=(lines, size, inner))


def _joined(x: Operand, axes: list[int] | tuple[int, ...]) -> Operand:
    some = replace(x, sizes=tuple(x.sizes[axis] for axis in axes), strides=tuple(x.strides[axis] for axis in axes))
    return joined([some])[0]


def _filled(operand: Operand) -> tuple[int, ...]:
    fill = _AXES - len(operand.sizes)
    return (*(1,) * fill, *operand.sizes, *(0,) * fill, *operand.strides)
