"""Energy counters that pass their end again and again."""

from __future__ import annotations

from powerlab.boards.simulator import layout
from powerlab.boards.simulator.faults.base import Bench, Fault
from powerlab.boards.simulator.faults.saved import Saved
from powerlab.boards.simulator.parts.base import Moment

_RANGE_UJ = 100_000_000
"""100 J: at the power of a server a second or two."""
_COUNTER, _RANGE = "energy_uj", "max_energy_range_uj"


class CounterWrap(Fault):
    """The RAPL counters' range shrinks to 100 J, so that they start again at 0 every few seconds and not every hour.

    A counter cannot be moved to its end without a leap that would be taken for energy, so the change waits for a moment
    without a worker: set the fault before a sweep, not in the middle of one.
    """

    name = "counter-wrap"
    summary = "the energy counters pass their end every few seconds (set it before a sweep)"
    needs = ("rapl",)
    lacks = "energy counter that wraps"

    def __init__(self, bench: Bench) -> None:
        """Prepare."""
        super().__init__(bench)
        self._saved = Saved(bench.sysroot)
        self._counters = [
            (sensor.files, path)
            for sensor in bench.power_sensors()
            for path in sensor.paths
            if path.endswith(f"/{_COUNTER}")
        ]
        self._begun = False

    def tick(self, moment: Moment) -> None:  # noqa: ARG002
        """Begin as soon as nobody works."""
        if self._begun or any(self.bench.sysroot.path(layout.LOAD_DIRECTORY).iterdir()):
            return
        self._begun = True
        for files, path in self._counters:
            self._saved.rewrite(path.removesuffix(_COUNTER) + _RANGE, str(_RANGE_UJ))
            files.alter(path, lambda value_uj: value_uj % (_RANGE_UJ + 1))

    def end(self) -> None:
        """Give the counters their range back."""
        self._saved.put_back()
        for files, path in self._counters:
            files.alter(path, None)
