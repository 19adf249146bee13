"""The over-current throttling of an Orin: the chip ``soctherm_oc`` counts events, and clocks drop while one lasts.

Events: 1 undervoltage, 2 average over-current, 3 instantaneous over-current (NVIDIA, Jetson Linux Developer Guide).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from powerlab.boards.board import Board
from powerlab.boards.simulator import layout
from powerlab.boards.simulator.parts.base import Files, Moment, Part

FAULT = "over-current"
_EVENTS = (1, 2, 3)
_AVERAGE = 2
_THROTTLED_SHARE = 0.5
_EVENT_PERIOD_S = 0.5
"""How often an event that lasts is counted again."""


class SocthermOc(Part):
    """Table: ``hwmon``, the chip's number; ``limit_w``, above which ``rails`` together set off event 2."""

    def __init__(self, board: Board, table: Mapping[str, Any], variant: str) -> None:
        """Start with no event."""
        super().__init__(board, table, variant)
        self._counts = dict.fromkeys(_EVENTS, 0)
        self._wait_s = 0.0
        self._throttled = False

    @property
    def directory(self) -> str:
        """The chip's directory."""
        return f"/sys/devices/platform/soctherm-oc-event/hwmon/hwmon{self.table['hwmon']}"

    def files(self, idle_w: Mapping[str, float]) -> Files:  # noqa: ARG002
        """Yield the chip's files."""
        yield f"{self.directory}/name", "soctherm_oc"
        for event in _EVENTS:
            yield f"{self.directory}/oc{event}_event_cnt", "0"
            yield f"{self.directory}/oc{event}_throt_en", "1"

    def links(self) -> Iterator[tuple[str, str]]:
        """Yield the chip's name by class."""
        yield f"/sys/class/hwmon/hwmon{self.table['hwmon']}", f"../..{self.directory.removeprefix('/sys')}"
        yield f"{self.directory}/device", "../.."

    def tick(self, moment: Moment) -> None:
        """Count events, and throttle while one lasts and its switch is on."""
        drawn_w = sum(moment.rails_w[rail] for rail in self.table["rails"])
        event = 3 if FAULT in moment.faults else _AVERAGE if drawn_w > self.table["limit_w"] else None
        if event is None:
            self._wait_s, self._throttled = 0.0, False
            return
        self._wait_s -= moment.passed_s
        if self._wait_s <= 0.0:
            self._wait_s = _EVENT_PERIOD_S
            self._counts[event] += 1
            layout.rewrite(self._path(f"oc{event}_event_cnt"), str(self._counts[event]))
            self._throttled = layout.first_line(self._path(f"oc{event}_throt_en")) == "1"

    def caps(self) -> Mapping[str, float]:
        """Return what an event leaves of the clocks."""
        share = _THROTTLED_SHARE if self._throttled else 1.0
        return {"cpu": share, "gpu": share}

    def _path(self, name: str) -> Path:
        return self.sysroot.path(f"{self.directory}/{name}")
