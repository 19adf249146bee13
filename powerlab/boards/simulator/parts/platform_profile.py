"""The firmware's own power modes (kernel, ABI/testing/sysfs-platform_profile): what each leaves of the clocks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from powerlab.boards.board import Board
from powerlab.boards.simulator import layout
from powerlab.boards.simulator.parts.base import Files, Moment, Part

_FILE = "/sys/firmware/acpi/platform_profile"


class PlatformProfile(Part):
    """Table: ``profiles``, each name with the share of the highest clock it leaves, and ``start``."""

    def __init__(self, board: Board, table: Mapping[str, Any], variant: str) -> None:
        """Start in the profile that is set at boot."""
        super().__init__(board, table, variant)
        self._share: float = table["profiles"][table["start"]]

    def files(self, idle_w: Mapping[str, float]) -> Files:  # noqa: ARG002
        """Yield the choice and what can be chosen."""
        yield _FILE, self.table["start"]
        yield f"{_FILE}_choices", " ".join(self.table["profiles"])

    def tick(self, moment: Moment) -> None:
        """Look at what is chosen; a firmware does not take what it does not know."""
        if moment.looked:
            chosen = layout.first_line(self.sysroot.path(_FILE))
            self._share = self.table["profiles"].get(chosen, self._share)

    def caps(self) -> Mapping[str, float]:
        """Return what the profile leaves of the clocks."""
        return {"cpu": self._share}
