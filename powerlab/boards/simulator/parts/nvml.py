"""NVIDIA cards: a stand-in for NVIDIA's library, and the files it answers from (:mod:`powerlab.nvml_library`).

The library in the tree has NVML's own interface and is loaded the way the real one is. Its files lie in
``/simulation/nvml``, a directory a card; a metric without a file is one the card lacks. The first card computes what
workers run on the GPU. ``load`` holds what others ask of a card, from 0 to 1: it stays 0 unless somebody writes it.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from powerlab.boards.board import Board
from powerlab.boards.simulator import layout
from powerlab.boards.simulator.card_files import DIRECTORY, fixed_files, parse_lock, path_of, resting_values
from powerlab.boards.simulator.cards import (
    REASON_POWER_CAP,
    Card,
    Demand,
    WorkingPoint,
    busy_caps,
    card_of,
    working_point,
)
from powerlab.boards.simulator.parts.base import Files, Moment, Part
from powerlab.boards.simulator.parts.files import SensorFiles
from powerlab.boards.simulator.sensor import Sensor
from powerlab.boards.simulator.warmth import Warmth
from powerlab.domain.errors import PowerlabError
from powerlab.sysroot import Sysroot

LIBRARY = "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1"
WIDTH = 20
_FAKE = "libfake_nvml.so"
_OVER_CURRENT = "over-current"
"""The fault at which a card's supply pulls the power brake."""
_WARMTH = {"thermal": {"k_per_w": 0.2, "time_s": 40.0}}
"""About 75 °C at 230 W, as published for cards with a blower."""


def fake_library() -> Path:
    """Return the stand-in's file, which the build puts beside the native core.

    Raises:
        PowerlabError: this installation has none.
    """
    core = importlib.import_module("powerlab.native._native").__file__
    path = Path(core or "").with_name(_FAKE)
    if not path.is_file():
        raise PowerlabError(f"{path} is missing, so NVIDIA cards cannot be simulated; install powerlab anew.")
    return path


@dataclass(slots=True)
class _Moving:
    """What of a card moves: sensors, counters (mJ at the start, ns and J so far), warmth and working points.

    ``own`` is the working point under ``own_load``, which others ask of the card, ``busy`` that under full load.
    """

    card: Card
    instant: Sensor
    average: Sensor
    counted_mj: int
    warmth: Warmth
    point: WorkingPoint
    own: WorkingPoint
    busy: WorkingPoint
    own_load: float = 0.0
    capped_ns: int = 0
    seen_j: float = 0.0
    seen_ns: int = 0

    @property
    def capped(self) -> bool:
        """Whether the power limit holds the clock down."""
        return bool(self.point.reasons & REASON_POWER_CAP)


class Nvml(Part):
    """Table: ``driver``, ``energy_mj``, ``instant``, ``average`` and ``cards``.

    That is the driver's version, what the energy counters start from, what :class:`Sensor` takes for either sensor, and
    for each card what :func:`card_of` takes.
    """

    def __init__(self, board: Board, table: Mapping[str, Any], variant: str) -> None:
        """Find the cards."""
        super().__init__(board, table, variant)
        power = layout.simulation_of(board.name)["power"]
        self._cards = [card_of(number, entry, power) for number, entry in enumerate(table["cards"])]
        self._moving: list[_Moving] = []
        self._files = SensorFiles(WIDTH)

    def files(self, idle_w: Mapping[str, float]) -> Files:  # noqa: ARG002 - it takes the cards for working
        """Yield the driver and the cards at rest."""
        # Without this the cards would run at full power until the simulator's first look.
        yield layout.CAPS_FILE, "\n".join(f"gpu{card.number} 0.000" for card in self._cards)
        yield "/proc/driver/nvidia/version", f"NVRM version: NVIDIA UNIX x86_64 Kernel Module  {self.table['driver']}"
        yield f"{DIRECTORY}/driver_version", self.table["driver"]
        yield f"{DIRECTORY}/nvml_version", f"12.{self.table['driver']}"
        for card in self._cards:
            for name, value in fixed_files(card).items():
                yield path_of(card, name), str(value)
            for name, number in resting_values(card, self.table["energy_mj"]).items():
                yield path_of(card, name), f"{number:<{WIDTH}d}"

    def copies(self) -> Iterator[tuple[str, Path]]:
        """Yield the library."""
        yield LIBRARY, fake_library()

    def open(self, sysroot: Sysroot) -> None:
        """Open the readings; the energy counters go on where they stood."""
        super().open(sysroot)
        names = resting_values(self._cards[0], 0)
        self._files.open(sysroot, [path_of(card, name) for card in self._cards for name in names])
        self._moving = [
            _Moving(
                card=card,
                instant=Sensor(**self.table["instant"]),
                average=Sensor(**self.table["average"]),
                counted_mj=int(layout.first_line(sysroot.path(path_of(card, "energy_mj")))),
                warmth=Warmth(_WARMTH),
                point=(resting := working_point(card, Demand(limit_w=card.default_w))),
                own=resting,
                busy=working_point(card, Demand(limit_w=card.default_w, load=1.0)),
            )
            for card in self._cards
        ]

    def tick(self, moment: Moment) -> None:
        """Move the sensors, and every 50 ms what follows the load, the limit and the locked clocks."""
        for moving in self._moving:
            card, true_w = moving.card, moment.rails_w[moving.card.rail]
            moving.warmth.follow(true_w, moment.passed_s)
            if moving.capped and (moment.gpu_load or moving.own_load):
                moving.capped_ns += round(moment.passed_s * 1e9)
            instant_w = moving.instant.observe(moment.now_ns, true_w, moment.noise)
            if instant_w is not None:
                self._write(card, "power_instant_mw", instant_w * 1000)
                self._write(card, "energy_mj", moving.counted_mj + self._counted_j(moving, moment, instant_w) * 1000)
            average_w = moving.average.observe(moment.now_ns, true_w, moment.noise)
            if average_w is not None:
                self._write(card, "power_average_mw", average_w * 1000)
            if moment.looked:
                self._look(moving, moment)

    def _counted_j(self, moving: _Moving, moment: Moment, instant_w: float) -> float:
        """Return what a card's counter has counted: the truth, or what a part-time sensor made of it."""
        if not moving.card.part_time:
            return float(self.table["instant"].get("gain", 1.0) * moment.energy_j[moving.card.rail])
        moving.seen_j += instant_w * (moment.now_ns - (moving.seen_ns or moment.now_ns)) / 1e9
        moving.seen_ns = moment.now_ns
        return moving.seen_j

    def _look(self, moving: _Moving, moment: Moment) -> None:
        """Read what somebody may have set, and show what the card makes of it."""
        card = moving.card
        try:
            demand = Demand(
                load=min(1.0, max(0.0, float(self._read(card, "load")))),
                limit_w=int(self._read(card, "power_limit_mw")) / 1000,
                locked_mhz=parse_lock(self._read(card, "locked_clocks_mhz")),
                memory_mhz=parse_lock(self._read(card, "locked_memory_clocks_mhz")),
                braked=_OVER_CURRENT in moment.faults,
            )
        except (OSError, ValueError):
            return  # somebody is writing that file just now: the card goes on as before until the next look
        load = max(demand.load, moment.gpu_load if card.number == 0 else 0.0)
        moving.own_load = demand.load
        moving.own, moving.busy = working_point(card, demand), working_point(card, replace(demand, load=1.0))
        moving.point = working_point(card, replace(demand, load=load))
        self._write(card, "clock_graphics_mhz", moving.point.clock_mhz)
        self._write(card, "clock_memory_mhz", moving.point.memory_mhz)
        self._write(card, "clocks_event_reasons", moving.point.reasons)
        self._write(card, "violation_power_ns", moving.capped_ns)
        self._write(card, "temperature_c", moving.warmth.celsius)
        self._write(card, "utilisation_percent", load * 100)

    def _read(self, card: Card, name: str) -> str:
        return layout.first_line(self.sysroot.path(path_of(card, name)))

    def _write(self, card: Card, name: str, value: float) -> None:
        self._files.write(path_of(card, name), round(value))

    def caps(self) -> Mapping[str, float]:
        """Return what each card draws without our work, and what the first makes of it."""
        first = self._moving[0]
        return {
            **{f"gpu{moving.card.number}": moving.own.share for moving in self._moving},
            **busy_caps(first.card, first.busy),
        }

    def close(self) -> None:
        """Close the readings."""
        self._files.close()
