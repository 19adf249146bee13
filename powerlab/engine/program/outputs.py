"""Outputs that are written where they are wanted, and not copied there at the end."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from powerlab.engine.program.operand import Operand
from powerlab.engine.program.program import Program, Step, Tensor
from powerlab.engine.program.storage import Space, Storage

_SMALLEST_FLOATS = 64
"""Smaller outputs are copied in no time."""


def written_in_place(program: Program) -> Program:
    """Return a program without the copies of outputs that a storage of their own holds.

    Whoever runs it gives outputs memory that is aligned like the arena's. An output may then lie where an input does
    only if every step that reads this input comes before the one that writes the output, or is that one and works
    element by element. Programs that run image by image stay as they are.
    """
    if program.looped:
        return program
    moved: dict[int, Storage] = {}
    taken: set[int] = set()
    steps = []
    for step in program.steps:
        source, target = _copied(step)
        if source is None or target is None or source.number in moved or target.index in taken:
            steps.append(step)
            continue
        moved[source.number] = replace(source, space=Space.OUTPUT, index=target.index)
        taken.add(target.index)
    return replace(program, steps=tuple(_renamed(step, moved) for step in steps))


def _copied(step: Step) -> tuple[Storage | None, Storage | None]:
    """Return what a step copies whole from the arena to an output, and that output; none where it does not."""
    if step.family != "copy" or step.out is None or step.x is None or step.settings:
        return None, None
    source, target = step.x, step.out
    whole = source.layout == target.layout and source.offset == target.offset == 0
    own = source.storage.space is Space.ARENA and target.storage.space is Space.OUTPUT
    same = source.storage.floats == target.storage.floats >= _SMALLEST_FLOATS
    return (source.storage, target.storage) if whole and own and same else (None, None)


def _renamed(step: Step, moved: Mapping[int, Storage]) -> Step:
    """Return a step with its tensors in the storages to which they were moved."""

    def there(storage: Storage) -> Storage:
        return moved.get(storage.number, storage)

    def tensor(one: Tensor | None) -> Tensor | None:
        return None if one is None else replace(one, storage=there(one.storage))

    def operand(one: Operand) -> Operand:
        return replace(one, storage=there(one.storage))

    if all(one.storage.number not in moved for one in step.tensors()):
        return step
    return replace(
        step,
        out=tensor(step.out),
        x=tensor(step.x),
        y=tensor(step.y),
        scratch=tensor(step.scratch),
        packed=None if step.packed is None else operand(step.packed),
        packed_bias=None if step.packed_bias is None else operand(step.packed_bias),
        operands=tuple(map(operand, step.operands)),
    )
