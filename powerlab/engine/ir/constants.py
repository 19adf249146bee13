"""Constants of a graph: small ones are kept, large ones may be recipes that make their value anew for whoever asks.

So a model's weights are never in memory twice: each is read from its file, or drawn, while its layer is packed for its
kernel, and given up again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
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
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    make: Callable[[], NDArray[Any]]

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
    if not any(isinstance(value, Recipe) for value in values):
        return function(*values)
    return Recipe(shape=shape, dtype=values[0].dtype, make=lambda: function(*map(value_of, values)))


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
