"""A process's place among those that train together on several devices."""

from __future__ import annotations

from dataclasses import dataclass

GONE = "that train together is gone"
"""Stands in every sentence of a process that ends because another one did."""
MEET_S = 300.0
"""How long all wait for the last one, which may still load its model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A process's place in a ring.

    Attributes:
        rank: its number, from 0 on.
        size: how many there are.
        key: a secret that all of them have.
        host: where the first one is.
        port: where that listens.
        listener: the first one's own socket, which listens already, by its file descriptor; None in the others.
        meet_s: how long to wait for the others.
    """

    rank: int
    size: int
    key: str
    host: str = ""
    port: int = 0
    listener: int | None = None
    meet_s: float = MEET_S
