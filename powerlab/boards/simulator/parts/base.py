"""The interface every part of a simulated board fulfils.

A part is one module in this package with one class, one line in ``PARTS`` of the registry beside it, and one table
``[simulation.NAME]`` in the file of each board that has it. The tree's writer asks it for its files; the running
simulator opens it and tells it the moment every 10 ms.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from powerlab.boards.board import Board
from powerlab.boards.simulator.physics import BoardState
from powerlab.boards.simulator.state import Settings
from powerlab.sysroot import Sysroot

Files = Iterator[tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """What is true on a board now.

    Attributes:
        now_ns: CLOCK_MONOTONIC.
        passed_s: time since the last moment in s; 0 at the first.
        rails_w: what each rail has drawn since the last moment, in W.
        components_w: the same for the components of the physical model.
        energy_j: the energy each rail has drawn since the simulator started, in J.
        state: clocks and load.
        settings: what the knobs are set to.
        gpu_load: what workers ask of the first graphics processor, 0 to 1.
        looked: the settings were read anew for this moment, which happens every 50 ms: the time for what need not be
            faster, such as clocks and temperatures.
        warmth_c: the temperature of the silicon in °C.
        noise: a seeded source of it, shared by all parts.
        faults: the faults in force.
    """

    now_ns: int
    passed_s: float
    rails_w: Mapping[str, float]
    components_w: Mapping[str, float]
    energy_j: Mapping[str, float]
    state: BoardState
    settings: Settings
    looked: bool
    warmth_c: float
    noise: random.Random
    faults: frozenset[str]
    gpu_load: float = 0.0


class Part:
    """A part that has nothing and does nothing: parts override what they have and do."""

    def __init__(self, board: Board, table: Mapping[str, Any], variant: str) -> None:
        """Make the part.

        Args:
            board: the board it belongs to.
            table: its table ``[simulation.NAME]``.
            variant: the software release to look like, ``jetpack4`` to ``jetpack6``; empty for boards without.
        """
        self.board, self.table, self.variant = board, table, variant
        self.sysroot = Sysroot()

    @property
    def jetpack(self) -> int | None:
        """The JetPack to look like, None for boards without."""
        return int(self.variant.removeprefix("jetpack")) if self.variant else None

    def files(self, idle_w: Mapping[str, float]) -> Files:  # noqa: ARG002
        """Yield path and text of every file; a sensor starts with its reading of the idle board, never with 0 W.

        Args:
            idle_w: what each rail draws in W when the board has booted and does nothing.
        """
        return iter(())

    def links(self) -> Iterator[tuple[str, str]]:
        """Yield path and target of every link; targets are relative, so that the tree can be moved."""
        return iter(())

    def programs(self) -> Iterator[tuple[str, str]]:
        """Yield path and source of every program: Python that imports nothing of powerlab and finds its own tree."""
        return iter(())

    def copies(self) -> Iterator[tuple[str, Path]]:
        """Yield path and original of every binary file that is a copy."""
        return iter(())

    def tables(self) -> Iterator[tuple[str, bytes]]:
        """Yield path and content of every other binary file, as it is at rest."""
        return iter(())

    def open(self, sysroot: Sysroot) -> None:
        """Make ready to move; raises OSError where a file is missing or cannot be written."""
        self.sysroot = sysroot

    def tick(self, moment: Moment) -> None:
        """Rewrite the part's files for a moment; raises OSError where one cannot be written."""

    def caps(self) -> Mapping[str, float]:
        """Return what this part leaves of the clocks after the last tick, as shares of the highest.

        Keys are ``cpu``, ``gpu`` (every GPU) and ``gpu0``, ``gpu1``; the least of all parts holds. 1 limits nothing.
        ``gpu0.power``, ``gpu0.clock`` and ``gpu0.memory`` are the fields of :class:`BusyGpu`, where a GPU computes.
        """
        return {}

    def close(self) -> None:
        """Let go of what :meth:`open` took; the files keep their last values, as a stopped clock does."""
