"""The outline of a network: its nodes in execution order, without weights."""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from importlib import resources

_DATA = resources.files(__package__) / "data"


@dataclass(frozen=True, slots=True, kw_only=True)
class OutlineNode:
    """A node, with those behind it that do little and follow it alone, such as a normalization.

    Attributes:
        name: of its first node.
        operators: of all of them, in order.
        shape: of its result, for a batch of one.
        macs: multiply-adds for a batch of one.
        inputs: the places of the nodes whose results it reads.
        members: names of all its nodes.
    """

    name: str
    operators: tuple[str, ...]
    shape: tuple[int, ...]
    macs: int
    inputs: tuple[int, ...]
    members: tuple[str, ...]


@functools.cache
def network_names() -> tuple[str, ...]:
    """Return the names of the zoo's networks, in alphabetical order."""
    return tuple(sorted(one.name.removesuffix(".json") for one in _DATA.iterdir() if one.name.endswith(".json")))


@functools.cache
def outline(name: str) -> tuple[OutlineNode, ...]:
    """Return the outline of one of :func:`network_names`; raises KeyError for any other name."""
    if name not in network_names():
        raise KeyError(name)
    rows = json.loads((_DATA / f"{name}.json").read_text())
    return tuple(
        OutlineNode(
            name=members[0],
            operators=tuple(operators),
            shape=tuple(shape),
            macs=macs,
            inputs=tuple(inputs),
            members=tuple(members),
        )
        for members, operators, shape, macs, inputs in rows
    )
