"""A sensor that is taken away while it is being read."""

from __future__ import annotations

from powerlab.boards.simulator.faults.base import SENSOR_PARTS, Bench, Fault
from powerlab.boards.simulator.faults.saved import Saved


class Unplugged(Fault):
    """The directory of the first sensor's chip vanishes with every link to it, as when a driver is unbound."""

    name = "unplugged"
    summary = "the first power sensor's directory vanishes"
    needs = SENSOR_PARTS
    lacks = "power sensor that is a file"

    def __init__(self, bench: Bench) -> None:
        """Prepare."""
        super().__init__(bench)
        self._saved = Saved(bench.sysroot)
        self._directory = bench.power_sensors()[0].directory
        self._held = list(bench.files_below(self._directory))

    def begin(self) -> None:
        """Unplug it."""
        for files, path in self._held:
            files.hold(path)
        self._saved.remove_directory(self._directory)

    def end(self) -> None:
        """Plug it in again."""
        self._saved.put_back()
        for files, path in self._held:
            files.release(path)
