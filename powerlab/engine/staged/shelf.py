"""Weights of several plans of one model: those that are the same are in memory once."""

from __future__ import annotations

import hashlib
import weakref
from collections.abc import Callable

from powerlab.engine.program.program import Floats
from powerlab.engine.runtime.plan import aligned


class Kept:
    """An array in memory that plans may read."""

    __slots__ = ("__weakref__", "array")

    def __init__(self, array: Floats) -> None:
        self.array = array


class Shelf:
    """Finds arrays by their content; one that nobody holds any more is forgotten."""

    def __init__(self) -> None:
        self._kept: weakref.WeakValueDictionary[tuple[int, bytes], Kept] = weakref.WeakValueDictionary()

    def keep_in(self, holder: list[Kept]) -> Callable[[Floats], Floats]:
        """Return what gives a plan the memory of its constants, which stays as long as ``holder`` does."""

        def keep(values: Floats) -> Floats:
            array = aligned(values)
            content = (array.size, hashlib.blake2b(array.data, digest_size=16).digest())
            kept = self._kept.get(content)
            if kept is None:
                kept = self._kept[content] = Kept(array)
            holder.append(kept)
            return kept.array

        return keep
