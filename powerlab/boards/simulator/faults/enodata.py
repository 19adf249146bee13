"""A sensor whose readings fail."""

from __future__ import annotations

from powerlab.boards.simulator.faults.first_sensor import FirstSensorFault


class Enodata(FirstSensorFault):
    """Reading the first sensor fails, as drivers answer ENODATA while a chip has no valid reading.

    A directory tree cannot answer a read with an error of its own choice: only a driver can. The file is emptied
    instead. A reader gets nothing from it, which powerlab's sampler and its probes take as they take an error: a failed
    reading, never a 0.
    """

    name = "enodata"
    summary = "reading the first power sensor fails"

    def spoil(self, path: str) -> None:
        """Let readings fail."""
        self.saved.empty(path)
