"""What simulated graphics cards share whose readings and settings are files at their PCI device: AMD's and Intel's.

A card's sensors are files of its hwmon chip, each with a lag, an average and an error of its own. The first card
computes what workers run on the GPU.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, ClassVar

from powerlab.boards.board import Board
from powerlab.boards.simulator import layout
from powerlab.boards.simulator.cards import Demand, WorkingPoint, busy_caps, card_of, working_point
from powerlab.boards.simulator.parts.base import Files, Moment, Part
from powerlab.boards.simulator.parts.files import SensorFiles
from powerlab.boards.simulator.sensor import Sensor
from powerlab.boards.simulator.warmth import ROOM_C, Warmth
from powerlab.sysroot import Sysroot

WIDTH = 20
_COUNTED_BEFORE_UJ = 1_000_000_000
_WARMTH = {"thermal": {"k_per_w": 0.17, "time_s": 40.0}}
"""About 75 °C at 250 W."""


class PciCards(Part):
    """Table: ``version``, ``root``, ``address``, ``device``, ``hwmon``, ``sensors``, ``counters`` and ``cards``.

    That is the driver's version, the bus that the card is on (below ``/sys/devices``), its address and identifier
    there, the number of its hwmon chip, for each file of power what :class:`Sensor` takes, for each counter what it
    shows of a joule of the card, and for the one card what :func:`card_of` takes.
    """

    driver: ClassVar[str]
    vendor: ClassVar[str]

    def __init__(self, board: Board, table: Mapping[str, Any], variant: str) -> None:
        """Find the card."""
        super().__init__(board, table, variant)
        power = layout.simulation_of(board.name)["power"]
        (entry,) = table["cards"]
        self.card = card_of(0, entry, power)
        self.directory = f"/sys/devices/{table['root']}/{table['address']}"
        self.hwmon = f"{self.directory}/hwmon/hwmon{table['hwmon']}"
        self._files = SensorFiles(WIDTH)
        self._sensors: dict[str, Sensor] = {}
        self._warmth = Warmth(_WARMTH)
        at_rest = Demand(limit_w=self.card.default_w)
        self._own, self._busy = (working_point(self.card, replace(at_rest, load=load)) for load in (0.0, 1.0))

    @abstractmethod
    def settings(self) -> Iterator[tuple[str, str]]:
        """Yield path and text of each file that can be set or never moves."""

    @abstractmethod
    def demand(self) -> Demand:
        """Read what is set, without a load; raises OSError or ValueError where somebody is writing just now."""

    @abstractmethod
    def clocks(self, point: WorkingPoint) -> Mapping[str, str]:
        """Return by path what the files of the clocks show at a working point."""

    def files(self, idle_w: Mapping[str, float]) -> Files:
        """Yield the card at rest."""
        # Without this the card would run at full power until the simulator's first look.
        yield layout.CAPS_FILE, "gpu0 0.000"
        yield f"{self.directory}/vendor", self.vendor
        yield f"{self.directory}/device", self.table["device"]
        yield f"{self.directory}/class", "0x030000"
        yield f"{self.directory}/drm/card0/dev", "226:0"
        yield f"/sys/bus/pci/drivers/{self.driver}/module", self.driver
        yield f"/sys/module/{self.driver}/version", self.table["version"]
        yield f"{self.hwmon}/name", self.driver
        yield f"{self.hwmon}/temp1_input", f"{round(ROOM_C * 1000):<{WIDTH}d}"
        for name in self.table.get("sensors", ()):
            yield f"{self.hwmon}/{name}", f"{round(idle_w[self.card.rail] * 1e6):<{WIDTH}d}"
        for name in self.table.get("counters", ()):
            yield f"{self.hwmon}/{name}", f"{_COUNTED_BEFORE_UJ:<{WIDTH}d}"
        yield from self.settings()
        yield from self.clocks(self._own).items()

    def links(self) -> Iterator[tuple[str, str]]:
        """Yield the links by class and bus."""
        below = self.directory.removeprefix("/sys/")
        up = "/".join([".."] * (below.count("/") + 1))
        yield f"/sys/bus/pci/devices/{self.table['address']}", f"../../../{below}"
        yield f"/sys/bus/pci/drivers/{self.driver}/{self.table['address']}", f"../../../../{below}"
        yield f"{self.directory}/driver", f"{up}/bus/pci/drivers/{self.driver}"
        yield "/sys/class/drm/card0", f"../../{below}/drm/card0"
        yield f"{self.directory}/drm/card0/device", "../.."
        yield f"/sys/class/hwmon/hwmon{self.table['hwmon']}", f"../..{self.hwmon.removeprefix('/sys')}"
        yield f"{self.hwmon}/device", "../.."

    def open(self, sysroot: Sysroot) -> None:
        """Open the readings."""
        super().open(sysroot)
        names = ("temp1_input", *self.table.get("sensors", ()), *self.table.get("counters", ()))
        self._files.open(sysroot, [f"{self.hwmon}/{name}" for name in names])
        self._sensors = {name: Sensor(**arguments) for name, arguments in self.table.get("sensors", {}).items()}

    def tick(self, moment: Moment) -> None:
        """Move the sensors, and every 50 ms what follows the load and the settings."""
        true_w = moment.rails_w[self.card.rail]
        self._warmth.follow(true_w, moment.passed_s)
        for name, sensor in self._sensors.items():
            if (seen_w := sensor.observe(moment.now_ns, true_w, moment.noise)) is not None:
                self._files.write(f"{self.hwmon}/{name}", round(seen_w * 1e6))
        for name, gain in self.table.get("counters", {}).items():
            counted_uj = _COUNTED_BEFORE_UJ + round(gain * moment.energy_j[self.card.rail] * 1e6)
            self._files.write(f"{self.hwmon}/{name}", counted_uj)
        if moment.looked:
            self._look(moment)

    def _look(self, moment: Moment) -> None:
        try:
            demand = self.demand()
        except (OSError, ValueError):
            return  # somebody is writing a file just now: the card goes on as before until the next look
        self._own, self._busy, point = (
            working_point(self.card, replace(demand, load=load)) for load in (0.0, 1.0, moment.gpu_load)
        )
        for path, text in self.clocks(point).items():
            layout.put(self.sysroot, path, text)
        self._files.write(f"{self.hwmon}/temp1_input", round(self._warmth.celsius * 1000))

    def caps(self) -> Mapping[str, float]:
        """Return what the card draws at rest, and what it makes of work."""
        return {"gpu0": self._own.share, **busy_caps(self.card, self._busy)}

    def close(self) -> None:
        """Close the readings."""
        self._files.close()
