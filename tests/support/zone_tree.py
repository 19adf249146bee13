"""Thermal zones as the kernel shows them, for tests to heat and cool."""

from __future__ import annotations

from pathlib import Path

from powerlab.boards.simulator import layout
from powerlab.sysroot import Sysroot


class ZoneTree:
    """A file tree with thermal zones below a folder."""

    def __init__(self, base: Path, *zones: tuple[str, str]) -> None:
        self._base = base / "sys/class/thermal"
        for number, (name, text) in enumerate(zones):
            (self._base / f"thermal_zone{number}").mkdir(parents=True)
            (self._base / f"thermal_zone{number}/type").write_text(name + "\n")
            (self._base / f"thermal_zone{number}/temp").write_text(text + "\n")
        self.sysroot = Sysroot(base)

    def write(self, number: int, text: str) -> None:
        """Let a zone say something, m°C mostly; who reads it meanwhile finds one text or the other."""
        layout.rewrite(self._base / f"thermal_zone{number}/temp", text)

    def heat(self, number: int, celsius: float) -> None:
        """Bring a zone to a temperature."""
        self.write(number, str(round(1000 * celsius)))

    def remove(self, number: int) -> None:
        """Let a zone be unreadable from now on."""
        (self._base / f"thermal_zone{number}/temp").unlink()
