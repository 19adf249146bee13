"""How optimizers move weights: a dispatch a weight, in place."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from powerlab.engine.codegen.attributes import number
from powerlab.engine.gpu.recorder import Recorder
from powerlab.engine.ir.graph import Node
from powerlab.engine.program.storage import Storage


class Moving(Struct, frozen=True, kw_only=True):
    """What an update reads and writes.

    Attributes:
        weight: the weight.
        kept: what the optimizer keeps of it.
        gradient: its gradient, or a sum of several.
        numbers: what the optimizer gives for the step.
        loss: of the step: where it is no finite number, nothing moves.
        elements: of the weight.
    """

    weight: Storage
    kept: tuple[Storage, ...]
    gradient: Storage
    numbers: Storage
    loss: Storage
    elements: int


def lower_sgd_update(recorder: Recorder, node: Node, moving: Moving) -> None:
    """Lower an SgdUpdate; without momentum the place of the velocity is the weight's."""
    ways = (len(moving.kept), int(number(node, "nesterov")))
    _emit(recorder, node, "sgd_update", replace(moving, kept=moving.kept or (moving.weight,)), ways)


def lower_adam_update(recorder: Recorder, node: Node, moving: Moving) -> None:
    """Lower an AdamUpdate."""
    _emit(recorder, node, "adam_update", moving, (int(number(node, "decoupled")),))


UPDATES: Mapping[str, Callable[[Recorder, Node, Moving], None]] = {
    "AdamUpdate": lower_adam_update,
    "SgdUpdate": lower_sgd_update,
}
"""Operator of an optimizer → what emits its dispatch."""


def _emit(recorder: Recorder, node: Node, kernel: str, moving: Moving, ways: tuple[int, ...]) -> None:
    count = -(-moving.elements // 4)
    recorder.emit_flat(
        kernel,
        node,
        (moving.weight, *moving.kept, moving.gradient, moving.numbers, moving.loss),
        count,
        constants=ways,
        push=(count, number(node, "share")),
        written=1 + len(moving.kept),
    )
