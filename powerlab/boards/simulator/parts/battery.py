"""A laptop's battery and its charger (kernel, ABI/testing/sysfs-class-power).

Write 1 to ``/sys/class/power_supply/AC/online`` in the tree to plug the charger in, 0 to unplug it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from powerlab.boards.board import Board
from powerlab.boards.simulator import layout
from powerlab.boards.simulator.parts.base import Files, Moment, Part
from powerlab.boards.simulator.parts.files import SensorFiles
from powerlab.boards.simulator.sensor import Sensor
from powerlab.sysroot import Sysroot

SUPPLIES = "/sys/class/power_supply"
AC_ONLINE = f"{SUPPLIES}/AC/online"
_J_PER_UWH = 3.6e-3
_ENERGY_STEP_UWH = 10_000


class Battery(Part):
    """The battery, the charger, and the battery of a mouse, which feeds no machine.

    Table: ``name``, ``rail``, ``full_uwh``, ``start_share``, ``voltage_uv``, ``charge_w``, ``mouse`` (the name of its
    battery), ``sensor`` (what :class:`Sensor` takes).
    """

    def __init__(self, board: Board, table: Mapping[str, Any], variant: str) -> None:
        """Start unplugged."""
        super().__init__(board, table, variant)
        self._directory = f"{SUPPLIES}/{table['name']}"
        self._stored_uwh: float = table["start_share"] * table["full_uwh"]
        self._sensor = Sensor(**table["sensor"])
        self._plugged_in = False
        self._files = SensorFiles(width=12)

    def files(self, idle_w: Mapping[str, float]) -> Files:
        """Yield the battery, the charger and the mouse's battery."""
        steady = {
            "type": "Battery",
            "present": "1",
            "scope": "System",
            "technology": "Li-ion",
            "status": "Discharging",
            "energy_full": self.table["full_uwh"],
            "energy_full_design": self.table["full_uwh"],
            "voltage_now": self.table["voltage_uv"],
        }
        for name, value in steady.items():
            yield f"{self._directory}/{name}", str(value)
        moving = {"power_now": round(idle_w[self.table["rail"]] * 1e6), **self._charge()}
        for name, number in moving.items():
            yield f"{self._directory}/{name}", f"{number:<12d}"
        yield f"{SUPPLIES}/AC/type", "Mains"
        yield AC_ONLINE, "0"
        mouse = {"type": "Battery", "present": "1", "scope": "Device", "status": "Discharging", "capacity": "80"}
        for name, text in mouse.items():
            yield f"{SUPPLIES}/{self.table['mouse']}/{name}", text

    def _charge(self) -> dict[str, int]:
        """Return the files that follow the stored energy, which gauges count in steps of 10 mWh."""
        steps_uwh = round(self._stored_uwh / _ENERGY_STEP_UWH) * _ENERGY_STEP_UWH
        return {"energy_now": steps_uwh, "capacity": round(100 * self._stored_uwh / self.table["full_uwh"])}

    def open(self, sysroot: Sysroot) -> None:
        """Open what moves."""
        super().open(sysroot)
        self._files.open(sysroot, [f"{self._directory}/{name}" for name in ("power_now", "energy_now", "capacity")])

    def tick(self, moment: Moment) -> None:
        """Take the machine's power out of the battery, or the charger's into it, and show the flow."""
        if moment.looked:
            self._follow_charger()
        drawn_w = moment.rails_w[self.table["rail"]]
        into_w = self.table["charge_w"] if self._plugged_in else -drawn_w
        stored_uwh = self._stored_uwh + into_w * moment.passed_s / _J_PER_UWH
        self._stored_uwh = min(max(stored_uwh, 0.0), self.table["full_uwh"])
        seen_w = self._sensor.observe(moment.now_ns, abs(into_w), moment.noise)
        if seen_w is not None:
            self._files.write(f"{self._directory}/power_now", round(seen_w * 1e6))
            for name, value in self._charge().items():
                self._files.write(f"{self._directory}/{name}", value)

    def _follow_charger(self) -> None:
        plugged_in = layout.first_line(self.sysroot.path(AC_ONLINE)) == "1"
        if plugged_in != self._plugged_in:
            self._plugged_in = plugged_in
            status = "Charging" if plugged_in else "Discharging"
            layout.rewrite(self.sysroot.path(f"{self._directory}/status"), status)

    def close(self) -> None:
        """Close the files."""
        self._files.close()
