"""Lets faults begin and end on a running board."""

from __future__ import annotations

from collections.abc import Iterable

from powerlab.boards.simulator.faults.base import Bench, Fault
from powerlab.boards.simulator.faults.control import possible
from powerlab.boards.simulator.faults.registry import FAULTS
from powerlab.boards.simulator.parts.base import Moment


class Follower:
    """The faults in force on one board."""

    def __init__(self, bench: Bench) -> None:
        """Begin without any."""
        self._bench = bench
        self._active: dict[str, Fault] = {}

    def follow(self, names: Iterable[str]) -> None:
        """Let those faults be in force and no others; names of no fault, or of none this board can have, do nothing.

        Raises:
            OSError: a file cannot be changed.
        """
        wanted = [name for name in names if name in FAULTS and possible(self._bench.simulation, name)]
        for name in [name for name in self._active if name not in wanted]:
            self._active.pop(name).end()
        for name in wanted:
            if name not in self._active:
                fault = FAULTS[name](self._bench)
                fault.begin()
                self._active[name] = fault

    def tick(self, moment: Moment) -> None:
        """Let the faults go on; call it when the parts have moved."""
        for fault in self._active.values():
            fault.tick(moment)

    def close(self) -> None:
        """Put everything right, so that the tree can be used again; a tree that is gone stays so."""
        if self._bench.sysroot.simulated:
            self.follow(())
