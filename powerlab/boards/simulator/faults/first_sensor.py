"""What faults of one power sensor share: its files are taken out of its part's hands, and given back at the end."""

from __future__ import annotations

from powerlab.boards.simulator.faults.base import SENSOR_PARTS, Bench, Fault
from powerlab.boards.simulator.faults.saved import Saved


class FirstSensorFault(Fault):
    """A fault of the first power sensor of a board: it overrides :meth:`spoil`."""

    needs: tuple[str, ...] = SENSOR_PARTS
    lacks = "power sensor that is a file"

    def __init__(self, bench: Bench) -> None:
        """Prepare."""
        super().__init__(bench)
        self.saved = Saved(bench.sysroot)
        self.sensor = bench.power_sensors()[0]

    def spoil(self, path: str) -> None:
        """Do to one of the sensor's files what the fault does."""
        raise NotImplementedError

    def begin(self) -> None:
        """Spoil the sensor's files."""
        for path in self.sensor.paths:
            self.sensor.files.hold(path)
            self.spoil(path)

    def end(self) -> None:
        """Put back what was spoilt."""
        self.saved.put_back()
        for path in self.sensor.paths:
            self.sensor.files.release(path)
