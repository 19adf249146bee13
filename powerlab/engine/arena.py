"""The memory arena: storages whose lifetimes do not touch share addresses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from powerlab.engine.layout import divide_up
from powerlab.engine.program import Step
from powerlab.engine.storage import Space, Storage

ALIGNMENT_FLOATS = 16
"""64 bytes: a cache line, and the widest vector."""


@dataclass(frozen=True, slots=True)
class Arena:
    """Where each storage of the arena begins.

    Attributes:
        floats: size of the whole arena.
        offsets: number of a storage -> floats from the arena's start.
    """

    floats: int
    offsets: dict[int, int]


@dataclass(frozen=True, slots=True)
class Lifetime:
    """Steps ``first`` to ``last`` (both included) in which a storage holds something."""

    storage: Storage
    first: int
    last: int

    def touches(self, other: Lifetime) -> bool:
        """Tell whether both are alive in some step."""
        return self.first <= other.last and other.first <= self.last


def lifetimes(steps: Sequence[Step]) -> list[Lifetime]:
    """Return the lifetime of every storage of the arena, from the first step that touches it to the last.

    What steps that are run image by image write for later ones is alive from the beginning: while the first steps work
    on the second image, the last ones have written the first.
    """
    found: dict[int, Lifetime] = {}
    for index, step in enumerate(steps):
        for tensor in step.tensors():
            storage = tensor.storage
            if storage.space is Space.ARENA:
                known = found.get(storage.number)
                first = 0 if tensor.shift else index
                found[storage.number] = Lifetime(storage, min(first, known.first) if known else first, index)
    return list(found.values())


def lay_out(steps: Sequence[Step]) -> Arena:
    """Place every storage, the largest first, at the lowest address free during its whole lifetime."""
    placed: list[tuple[int, int, Lifetime]] = []
    for lifetime in sorted(lifetimes(steps), key=lambda life: (-life.storage.floats, life.first)):
        floats = divide_up(lifetime.storage.floats, ALIGNMENT_FLOATS) * ALIGNMENT_FLOATS
        begin = 0
        for other_begin, other_end, other in sorted(placed, key=lambda item: item[0]):
            if other_begin < begin + floats and begin < other_end and lifetime.touches(other):
                begin = other_end
        placed.append((begin, begin + floats, lifetime))
    return Arena(
        floats=max((end for _, end, _ in placed), default=0),
        offsets={lifetime.storage.number: begin for begin, _, lifetime in placed},
    )
