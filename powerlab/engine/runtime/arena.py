"""The memory arena: storages whose lifetimes do not touch share addresses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from powerlab.engine.program.layout import divide_up
from powerlab.engine.program.program import Program, Step
from powerlab.engine.program.storage import Space, Storage

ALIGNMENT_FLOATS = 16
"""64 bytes: a cache line, and the widest vector."""


@dataclass(frozen=True, slots=True)
class Arena:
    """Where each storage of the arena begins.

    Attributes:
        floats: size of the whole arena.
        offsets: number of a storage -> floats from the arena's start.
        shares: number of a storage of which each thread has its own -> floats from one thread's to the next.
    """

    floats: int
    offsets: dict[int, int]
    shares: dict[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Lifetime:
    """Steps ``first`` to ``last`` (both included) in which a storage holds something."""

    storage: Storage
    first: int
    last: int


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


def lay_out(program: Program) -> Arena:
    """Place every storage that a program's steps touch, first what threads have of their own: see :func:`place`."""
    own = program.own_storages()
    lives = lifetimes(program.steps)
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
    room = np.zeros((4, len(lives)), np.int64)  # begin, end, first and last step of each, in the order of begins
    offsets: dict[int, int] = {}
    for life in sorted(lives, key=lambda life: (-life.storage.floats, life.first)):
        floats = divide_up(life.storage.floats, alignment) * alignment
        count = len(offsets)
        begins, ends, firsts, lasts = room[:, :count]
        alive = (firsts <= life.last) & (lasts >= life.first)
        begin = _lowest_gap(begins[alive], ends[alive], floats)
        at = int(begins.searchsorted(begin))
        room[:, at + 1 : count + 1] = room[:, at:count]
        room[:, at] = (begin, begin + floats, life.first, life.last)
        offsets[life.storage.number] = begin
    return Arena(floats=int(room[1].max(initial=0)), offsets=offsets)


def _lowest_gap(begins: NDArray[np.int64], ends: NDArray[np.int64], floats: int) -> int:
    """Return where the lowest gap of ``floats`` begins between pieces in the order of their begins, or behind them."""
    reached = np.maximum.accumulate(np.concatenate(([0], ends)))
    (wide,) = np.nonzero(begins - reached[:-1] >= floats)
    return int(reached[wide[0] if wide.size else -1])
