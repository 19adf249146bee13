"""Memory a program works in: storages, which get their addresses when the whole program is known."""

from __future__ import annotations

from enum import Enum

from msgspec import Struct

FLOAT_BYTES = 4
"""Of a float, which memory is counted in, whatever is kept there."""


class Space(Enum):
    """Where a storage lives: in the plan's arena, in an array that a run brings along, or among a GPU's constants."""

    ARENA = "ARENA"
    INPUT = "INPUT"
    OUTPUT = "OUTPUT"
    CONSTANT = "CONSTANT"


class Storage(Struct, frozen=True, gc=False):
    """A piece of memory; several tensors may be views of it.

    Attributes:
        number: unique in its program.
        space: where it lives.
        index: which input, output or constant it is; 0 in the arena.
        floats: its size.
    """

    number: int
    space: Space
    index: int
    floats: int
