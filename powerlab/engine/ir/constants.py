"""Constants of a graph: small ones are kept, large ones may be recipes that make their value anew for whoever asks.

So a model's weights are never in memory twice: each is read from its file, or drawn, while its layer is packed for its
kernel, and given up again.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Hashable, Iterator, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

LARGE_ELEMENTS = 1 << 14
"""From so many elements on a value is worth a recipe: all smaller ones of a network together are little."""


class Recipe(Struct, frozen=True, kw_only=True, eq=False):
    """How to make a constant.

    Attributes:
        shape: of the value.
        dtype: of its elements.
        make: makes the value, the same every time; nobody else holds the array.
        way: what ``make`` computes of ``sources``; None: it reads or draws the value.
        sources: other values.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    make: Callable[[], NDArray[Any]]
    way: Callable[..., NDArray[Any]] | None = None
    sources: tuple[NDArray[Any] | Recipe, ...] = ()

    @property
    def size(self) -> int:
        """Return how many elements the value has."""
        return math.prod(self.shape)


Value = NDArray[Any] | Recipe


def value_of(value: Value) -> NDArray[Any]:
    """Return the array, which a recipe makes now."""
    return value.make() if isinstance(value, Recipe) else value


def derived(value: Value, shape: tuple[int, ...], function: Callable[[NDArray[Any]], NDArray[Any]]) -> Value:
    """Return ``function`` of a value, of the given shape: a recipe becomes a recipe, and nothing is computed now."""
    return combined((value,), shape, function)


def combined(values: tuple[Value, ...], shape: tuple[int, ...], function: Callable[..., NDArray[Any]]) -> Value:
    """Return ``function`` of several values, of the given shape: a recipe where one of them is a recipe."""
    return (
        recipe_of(values, shape, function) if any(isinstance(value, Recipe) for value in values) else function(*values)
    )


def recipe_of(values: tuple[Value, ...], shape: tuple[int, ...], function: Callable[..., NDArray[Any]]) -> Recipe:
    """Return the recipe of ``function`` of values, of the given shape."""
    return Recipe(
        shape=shape,
        dtype=values[0].dtype,
        make=lambda: function(*map(value_of, values)),
        way=function,
        sources=values,
    )


def origin(value: Value) -> Hashable:
    """Return what is equal for values that are made in the same way of the same values.

    Functions count as the same way where they are the same, or a ``partial`` of the same with equal arguments; where
    such an argument cannot be compared, nothing is like the value.
    """
    if not isinstance(value, Recipe):
        return content(value)
    if value.way is None:
        return value
    found = (_way(value.way), *map(origin, value.sources))
    try:
        hash(found)
    except TypeError:
        return value
    return found


def source_of(value: Value) -> Recipe | None:
    """Return the first recipe that reads or draws what a value is computed of; None where there is none."""
    if not isinstance(value, Recipe):
        return None
    if value.way is None:
        return value
    return next((found for source in value.sources if (found := source_of(source)) is not None), None)


def _way(function: Callable[..., Any]) -> Hashable:
    if not isinstance(function, partial):
        return function
    arguments = (*enumerate(function.args), *function.keywords.items())
    return (function.func, *((at, content(one) if isinstance(one, np.ndarray) else one) for at, one in arguments))


def content(array: NDArray[Any]) -> Hashable:
    """Return what is equal for arrays of the same type, shape and values, in a few bytes."""
    found = hashlib.blake2b(np.ascontiguousarray(array).data, digest_size=16)
    return array.shape, array.dtype.str, found.digest()


class Constants(Mapping[str, NDArray[Any]]):
    """Name to value; a value with a recipe is made at every look-up."""

    __slots__ = ("kept",)

    def __init__(self, values: Mapping[str, Value]) -> None:
        self.kept: Mapping[str, Value] = (
            values.kept if isinstance(values, Constants) else MappingProxyType(dict(values))
        )

    def __getitem__(self, name: str) -> NDArray[Any]:
        return value_of(self.kept[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self.kept)

    def __len__(self) -> int:
        return len(self.kept)

    def __contains__(self, name: object) -> bool:
        return name in self.kept
