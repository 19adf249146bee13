"""Sensors that are gone, or say what a dead one says."""

from __future__ import annotations

from powerlab.boards.simulator.faults.base import SENSOR_PARTS, Bench, Fault
from powerlab.boards.simulator.faults.saved import Saved
from powerlab.boards.simulator.parts.base import Moment

_DEAD_M_C = -256000
"""What Tegra's thermal sensors say when they are not powered."""
_ZONE = "/sys/class/thermal/thermal_zone0/temp"


class DeadSensor(Fault):
    """The first power sensor's files are gone, and the first thermal zone says -256 °C."""

    name = "dead-sensor"
    summary = "the first power sensor's files are gone, the first temperature is -256 °C"
    needs = SENSOR_PARTS
    lacks = "power sensor that is a file"

    def __init__(self, bench: Bench) -> None:
        """Prepare."""
        super().__init__(bench)
        self._saved = Saved(bench.sysroot)
        self._sensor = bench.power_sensors()[0]

    def begin(self) -> None:
        """Take the files away."""
        for path in self._sensor.paths:
            self._sensor.files.hold(path)
            self._saved.remove(path)

    def tick(self, moment: Moment) -> None:  # noqa: ARG002
        """Let the zone say what a dead one says, after its part has written the truth."""
        self._saved.rewrite(_ZONE, str(_DEAD_M_C))

    def end(self) -> None:
        """Put the files back."""
        self._saved.put_back()
        for path in self._sensor.paths:
            self._sensor.files.release(path)
