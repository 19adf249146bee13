"""A server's management controller: the power of the whole machine in whole watts, and the program that asks for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import resources
from typing import Any

from powerlab.boards.board import Board
from powerlab.boards.simulator import layout
from powerlab.boards.simulator.parts.base import Files, Moment, Part
from powerlab.boards.simulator.physics import PowerModel, components_w
from powerlab.boards.simulator.sensor import Sensor
from powerlab.boards.simulator.start import start_settings
from powerlab.sysroot import Sysroot

READING = "/simulation/ipmi"
"""What the controller knows: whether it measures, and its present, least, most and mean power in W."""
_UPDATE_PERIOD_S = 1.0


class Ipmi(Part):
    """Table: ``supply_loss``, the share of its output that the power supply loses, and ``state``, ``activated`` or not.

    Source: DCMI 1.5, 6.6.1; the controller averages over a second and rounds to whole watts.
    """

    def __init__(self, board: Board, table: Mapping[str, Any], variant: str) -> None:
        """Start with no reading; what was seen is a count, and sum, least and most in W."""
        super().__init__(board, table, variant)
        self._seen = (0, 0, 0, 0)
        self._sensor = Sensor(_UPDATE_PERIOD_S)

    def files(self, idle_w: Mapping[str, float]) -> Files:  # noqa: ARG002
        """Yield the controller's device and its reading of the idle machine."""
        simulation = layout.simulation_of(self.board.name)
        idle = start_settings(self.board, simulation, self.jetpack).state(busy_threads=0)
        reading_w = round(self._drawn_w(components_w(PowerModel.from_document(simulation), idle)))
        yield "/dev/ipmi0", ""
        yield READING, self._text(reading_w, reading_w, reading_w, reading_w)

    def programs(self) -> Iterator[tuple[str, str]]:
        """Yield the program."""
        source = resources.files("powerlab.boards.simulator") / "ipmitool_program.py"
        yield "/usr/bin/ipmitool", source.read_text(encoding="utf-8")

    def open(self, sysroot: Sysroot) -> None:
        """Begin anew."""
        super().open(sysroot)
        self._seen = (0, 0, 0, 0)
        self._sensor = Sensor(_UPDATE_PERIOD_S, averaging_s=_UPDATE_PERIOD_S, noise_relative=0.003, step_w=1.0)

    def tick(self, moment: Moment) -> None:
        """Read once a second."""
        seen_w = self._sensor.observe(moment.now_ns, self._drawn_w(moment.components_w), moment.noise)
        if seen_w is None:
            return
        count, sum_w, least_w, most_w = self._seen
        now_w = round(seen_w)
        self._seen = (count + 1, sum_w + now_w, min(least_w or now_w, now_w), max(most_w, now_w))
        count, sum_w, least_w, most_w = self._seen
        layout.rewrite(self.sysroot.path(READING), self._text(now_w, least_w, most_w, round(sum_w / count)))

    def _drawn_w(self, components: Mapping[str, float]) -> float:
        loss: float = self.table["supply_loss"]
        return sum(components.values()) * (1.0 + loss)

    def _text(self, *powers_w: int) -> str:
        return " ".join([f"{self.table['state']:<11}", *(f"{power_w:6d}" for power_w in powers_w)])
