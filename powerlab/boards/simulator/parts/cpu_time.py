"""The processor time a simulated board's kernel counts, as ``/proc/stat`` shows it (Documentation/filesystems/proc)."""

from __future__ import annotations

from collections.abc import Iterable

from powerlab.boards.simulator.physics import BoardState

PATH = "/proc/stat"
_TICKS_PER_S = 100
_WIDTH = 12


class CpuTime:
    """Work and idleness of every core since boot, in s; a core that is offline keeps its figures."""

    def __init__(self, cores: Iterable[int]) -> None:
        """Begin at boot."""
        self._busy_s = dict.fromkeys(cores, 0.0)
        self._idle_s = dict.fromkeys(self._busy_s, 0.0)

    def pass_time(self, online: Iterable[int], state: BoardState, passed_s: float) -> None:
        """Add a time in which the board was in a state; ``online`` are its cores in the order threads fill them."""
        for place, core in enumerate(online):
            share = state.busy_share if place < state.busy_cores else 0.0
            self._busy_s[core] += share * passed_s
            self._idle_s[core] += (1.0 - share) * passed_s

    def text(self, online: Iterable[int]) -> str:
        """Return the file's text: a line of all cores together, and one for each that is online."""
        lines = [_line("cpu ", sum(self._busy_s.values()), sum(self._idle_s.values()))]
        lines += [_line(f"cpu{core}", self._busy_s[core], self._idle_s[core]) for core in sorted(online)]
        return "\n".join(lines)


def _line(name: str, busy_s: float, idle_s: float) -> str:
    """Return user, nice, system, idle, iowait, irq, softirq, steal, guest and guest_nice, always equally wide."""
    busy, idle = (f"{round(seconds * _TICKS_PER_S):0{_WIDTH}d}" for seconds in (busy_s, idle_s))
    return f"{name} {busy} 0 0 {idle} 0 0 0 0 0 0"
