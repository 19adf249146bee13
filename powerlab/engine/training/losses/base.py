"""What a loss is, and what it compares with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from msgspec import Struct

from powerlab.engine.ir.graph import Array


class Target(Struct, frozen=True, kw_only=True):
    """What a network shall learn to give, as a step is given it.

    Attributes:
        name: as error messages call it.
        shape: of one batch; an axis of -1 has any size.
        dtype: of its elements.
        prepare: returns the inputs of the graph that it becomes, by name, each with the batch as its first axis;
            raises PowerlabError where a label is out of range.
    """

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    prepare: Callable[[Array], Mapping[str, Array]]


class Loss(Struct, frozen=True):
    """A loss in the graph.

    Attributes:
        value: the tensor that holds it, a single number.
        target: what it compares with.
        seeds: its gradients by the outputs of the network.
    """

    value: str
    target: Target
    seeds: Mapping[str, str]
