"""Sensors that go on answering, always the same."""

from __future__ import annotations

from powerlab.boards.simulator.faults.base import SENSOR_PARTS, Fault


class Stale(Fault):
    """Every power sensor keeps the value it has, as firmware leaves it when it hangs behind a driver that does not."""

    name = "stale"
    summary = "the power sensors' values stop"
    needs = SENSOR_PARTS
    lacks = "power sensor that is a file"

    def begin(self) -> None:
        """Let the values stop."""
        for sensor in self.bench.power_sensors():
            for path in sensor.paths:
                sensor.files.hold(path)

    def end(self) -> None:
        """Let them go on; counters have counted meanwhile."""
        for sensor in self.bench.power_sensors():
            for path in sensor.paths:
                sensor.files.release(path)
