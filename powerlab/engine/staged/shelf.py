"""Weights of several plans of one model: those that are the same are made once, and in memory once."""

from __future__ import annotations

from collections.abc import Hashable
from weakref import WeakValueDictionary

from powerlab.engine.ir.constants import Recipe, content, origin
from powerlab.engine.program.program import Floats
from powerlab.engine.runtime.plan import aligned


class Kept:
    """An array in memory that plans may read."""

    __slots__ = ("__weakref__", "array")

    def __init__(self, array: Floats) -> None:
        self.array = array


class Shelf:
    """Finds arrays by their content, and by how they were made; one that nobody holds any more is forgotten."""

    def __init__(self) -> None:
        self.of_content: WeakValueDictionary[Hashable, Kept] = WeakValueDictionary()
        self.of_origin: WeakValueDictionary[Hashable, Kept] = WeakValueDictionary()


class Holder:
    """Gives a plan the memory of its constants.

    Args:
        shelf: what all plans of the model share.
        held: gets what the plan reads, which stays as long as this does.
    """

    def __init__(self, shelf: Shelf, held: list[Kept]) -> None:
        self._shelf, self._held = shelf, held
        self._here: dict[int, Kept] = {}
        self._origins: dict[int, Hashable] = {}

    def find(self, recipe: Recipe) -> Floats | None:
        """Return what a recipe like this one made for another plan; None: nothing did."""
        kept = self._shelf.of_origin.get(origin(recipe))
        if kept is None:
            return None
        self._here[id(kept.array)] = kept
        return kept.array

    def add(self, recipe: Recipe, weights: Floats) -> None:
        """Note what a recipe made."""
        self._origins[id(weights)] = origin(recipe)

    def keep(self, values: Floats) -> Floats:
        """Return where a constant lies for good."""
        kept = self._here.get(id(values)) or self._kept(values)
        self._held.append(kept)
        return kept.array

    def _kept(self, values: Floats) -> Kept:
        array = aligned(values)
        held = content(array)
        kept = self._shelf.of_content.get(held)
        if kept is None:
            kept = self._shelf.of_content[held] = Kept(array)
        made_by = self._origins.get(id(values))
        if made_by is not None:
            self._shelf.of_origin[made_by] = kept
        return kept
