"""The memory arena: storages whose lifetimes do not touch share addresses."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct, field

from powerlab.engine.program.layout import divide_up
from powerlab.engine.program.program import Program, Step
from powerlab.engine.program.storage import Space, Storage
from powerlab.engine.target.tiers import native_engine

ALIGNMENT_FLOATS = 16
"""64 bytes: a cache line, and the widest vector."""


class Arena(Struct, frozen=True):
    """Where each storage of the arena begins.

    Attributes:
        floats: size of the whole arena.
        offsets: number of a storage -> floats from the arena's start.
        shares: number of a storage of which each thread has its own -> floats from one thread's to the next.
    """

    floats: int
    offsets: dict[int, int]
    shares: dict[int, int] = field(default_factory=dict)


class Lifetime(Struct, frozen=True, gc=False):
    """Steps ``first`` to ``last`` (both included) in which a storage holds something."""

    storage: Storage
    first: int
    last: int


def lifetimes(steps: Sequence[Step]) -> list[Lifetime]:
    """Return the lifetime of every storage of the arena, from the first step that touches it to the last.

    What steps that are run image by image write for later ones is alive from the beginning: while the first steps work
    on the second image, the last ones have written the first.
    """
    storages: dict[int, Storage] = {}
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for index, step in enumerate(steps):
        for tensor in step.tensors():
            storage = tensor.storage
            if storage.space is Space.ARENA:
                number = storage.number
                storages[number], last[number] = storage, index
                first[number] = 0 if tensor.shift else first.get(number, index)
    return [Lifetime(storage, first[number], last[number]) for number, storage in storages.items()]


def lay_out(program: Program, lives: Sequence[Lifetime] | None = None) -> Arena:
    """Place every storage that a program's steps touch, first what threads have of their own: see :func:`place`.

    Args:
        program: the steps.
        lives: the lifetimes of its storages, where they are known.
    """
    own = program.own_storages()
    lives = lifetimes(program.steps) if lives is None else lives
    first = place([life for life in lives if life.storage.number in own], ALIGNMENT_FLOATS)
    rest = place([life for life in lives if life.storage.number not in own], ALIGNMENT_FLOATS)
    before = first.floats * program.apart
    moved = {number: before + offset for number, offset in rest.offsets.items()}
    return Arena(before + rest.floats, first.offsets | moved, dict.fromkeys(own, first.floats))


def place(lives: Sequence[Lifetime], alignment: int) -> Arena:
    """Place every storage, the largest first, at the lowest address free during its whole lifetime.

    Args:
        lives: of the storages.
        alignment: of each, in floats.
    """
    ordered = sorted(lives, key=lambda life: (-life.storage.floats, life.first))
    sizes = [divide_up(life.storage.floats, alignment) * alignment for life in ordered]
    offsets: list[int] = native_engine().place(
        [(size, life.first, life.last) for size, life in zip(sizes, ordered, strict=True)]
    )
    end = max((begin + size for begin, size in zip(offsets, sizes, strict=True)), default=0)
    return Arena(end, {life.storage.number: begin for life, begin in zip(ordered, offsets, strict=True)})
