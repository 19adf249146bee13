"""Energy counters that pass their end again and again."""

from __future__ import annotations

from powerlab.boards.simulator import layout
from powerlab.boards.simulator.faults.base import Bench, Fault
from powerlab.boards.simulator.faults.saved import Saved
from powerlab.boards.simulator.parts.base import Moment

_RANGE_UJ = 100_000_000
"""100 J: at the power of a server a second or two."""
_COUNTS = 2**32
_COUNTER, _RANGE = "energy_uj", "max_energy_range_uj"


class _Shortened:
    """Turns the readings of a counter into those of one with the short range; the counter's own end makes no leap."""

    def __init__(self, range_uj: int) -> None:
        # The counter holds 32 bits, so it starts again one unit after the largest value it shows.
        self._lap_uj = range_uj + round(range_uj / (_COUNTS - 1))
        self._laps = 0
        self._last_uj = 0

    def __call__(self, value_uj: int) -> int:
        self._laps += value_uj < self._last_uj
        self._last_uj = value_uj
        return (self._laps * self._lap_uj + value_uj) % _RANGE_UJ


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
            limit = path.removesuffix(_COUNTER) + _RANGE
            files.alter(path, _Shortened(int(self.bench.sysroot.read(limit))))
            self._saved.rewrite(limit, str(_RANGE_UJ))

    def end(self) -> None:
        """Give the counters their range back."""
        self._saved.put_back()
        for files, path in self._counters:
            files.alter(path, None)
