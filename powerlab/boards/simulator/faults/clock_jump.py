"""A wall clock that is set while the board works."""

from __future__ import annotations

from powerlab.boards.simulator import layout
from powerlab.boards.simulator.faults.base import Fault

JUMP_S = 3600


class ClockJump(Fault):
    """The board's wall clock is an hour ahead from now on.

    The kernel's own clock is this machine's and is left alone: what jumps is the time that the programs in the tree
    print, which read the offset from there.
    """

    name = "clock-jump"
    summary = "the board's wall clock, as its programs print it, jumps by an hour"

    def begin(self) -> None:
        """Set the clock."""
        layout.rewrite(self.bench.sysroot.path(layout.CLOCK_FILE), str(JUMP_S))

    def end(self) -> None:
        """Set it back."""
        layout.rewrite(self.bench.sysroot.path(layout.CLOCK_FILE), "0")
