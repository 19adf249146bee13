"""Where the storages of a program lie in the memory of a plan, for each slice of a batch."""

from __future__ import annotations

from collections.abc import Sequence

from powerlab.engine.gpu.program import WORD_BYTES, GpuProgram, lifetimes
from powerlab.engine.program.storage import Space, Storage
from powerlab.engine.runtime.arena import place

_ALIGNMENT_WORDS = 64
"""256 bytes: no device asks for more of what a kernel sees."""

_ROOMS = {Space.INPUT: 0, Space.OUTPUT: 1, Space.ARENA: 2, Space.CONSTANT: 3}
"""Space → the number of its room in a native ``Plan``."""


class Layout:
    """See the module. Slices have inputs, outputs and intermediate memory of their own, and the constants together.

    Args:
        program: of one slice.
        slices: how many there are.
    """

    def __init__(self, program: GpuProgram, slices: int) -> None:
        self._slices = slices
        arena = place(lifetimes(program), _ALIGNMENT_WORDS)
        self._arena = {number: WORD_BYTES * offset for number, offset in arena.offsets.items()}
        for number, part in program.parts.items():
            self._arena[number] = self._arena[part.whole.number] + WORD_BYTES * part.first
        self._slice = {number: part.slice for number, part in program.parts.items()}
        self._offsets = {
            Space.INPUT: _offsets(program.inputs),
            Space.OUTPUT: _offsets(program.outputs),
            Space.ARENA: _offsets([arena.floats]),
            Space.CONSTANT: _offsets([constant.words for constant in program.constants]),
        }

    @property
    def arena_bytes(self) -> int:
        """Return the memory that activations of all slices take."""
        return self._slices * self._offsets[Space.ARENA][-1]

    def rooms(self) -> list[int]:
        """Return the bytes of each room."""
        return [(1 if space is Space.CONSTANT else self._slices) * self._offsets[space][-1] for space in _ROOMS]

    def offsets(self, space: Space, part: int = 0) -> list[int]:
        """Return where the inputs or outputs of a slice begin, or the constants of all."""
        offsets = self._offsets[space]
        return [part * offsets[-1] + offset for offset in offsets[:-1]]

    def binding(self, storage: Storage, part: int, *, written: bool) -> tuple[int, int, int, bool]:
        """Return a storage of a slice as the native plan wants it: room, first byte, bytes, whether it is written."""
        space = storage.space
        own = self._arena[storage.number] if space is Space.ARENA else self._offsets[space][storage.index]
        at = part + self._slice.get(storage.number, 0)
        before = 0 if space is Space.CONSTANT else at * self._offsets[space][-1]
        return _ROOMS[space], before + own, WORD_BYTES * storage.floats, written


def _offsets(words: Sequence[int]) -> list[int]:
    """Return the byte at which each of several pieces begins, and behind them the size of all."""
    offsets = [0]
    for size in words:
        offsets.append(offsets[-1] + -(-size // _ALIGNMENT_WORDS) * _ALIGNMENT_WORDS * WORD_BYTES)
    return offsets
