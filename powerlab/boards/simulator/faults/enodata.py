"""A sensor whose readings fail."""

from __future__ import annotations

from powerlab.boards.simulator.faults.base import SENSOR_PARTS, Bench, Fault
from powerlab.boards.simulator.faults.saved import Saved


class Enodata(Fault):
    """Reading the first sensor fails, as drivers answer ENODATA while a chip has no valid reading.

    A directory tree cannot answer a read with an error of its own choice: only a driver can. The file is emptied
    instead. A reader gets nothing from it, which powerlab's sampler and its probes take as they take an error: a failed
    reading, never a 0.
    """

    name = "enodata"
    summary = "reading the first power sensor fails"
    needs = SENSOR_PARTS
    lacks = "power sensor that is a file"

    def __init__(self, bench: Bench) -> None:
        """Prepare."""
        super().__init__(bench)
        self._saved = Saved(bench.sysroot)
        self._sensor = bench.power_sensors()[0]

    def begin(self) -> None:
        """Let readings fail."""
        for path in self._sensor.paths:
            self._sensor.files.hold(path)
            self._saved.empty(path)

    def end(self) -> None:
        """Let them work again."""
        self._saved.put_back()
        for path in self._sensor.paths:
            self._sensor.files.release(path)
