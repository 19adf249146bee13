"""Adds up the true energy of a simulated board, for whoever wants to check a measurement."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from powerlab.boards.board import Board
from powerlab.boards.simulator import layout
from powerlab.sysroot import Sysroot


def total_rails(simulation: Mapping[str, Any], board: Board) -> tuple[str, ...]:
    """Return the rails that make up the board's true total: ``total`` of the simulation, else the board's formula."""
    if "total" in simulation:
        return tuple(simulation["total"])
    return tuple(key.partition(":")[2] for key in board.total.rails) if board.total else ()


def energy_line(now_ns: int, energy_j: float) -> str:
    """Return the text of the energy file: CLOCK_MONOTONIC in ns and µJ, always equally wide."""
    return f"{now_ns:20d} {round(energy_j * 1e6):20d}"


def rail_lines(energy_j: Mapping[str, float]) -> str:
    """Return the text of the file with each rail's energy in µJ."""
    return "\n".join(f"{round(joules * 1e6):20d} {rail}" for rail, joules in energy_j.items())


class Ledger:
    """The energy of every rail and of the total since the simulator started."""

    def __init__(self, sysroot: Sysroot, simulation: Mapping[str, Any], board: Board) -> None:
        """Open the files; raises OSError where one is missing or cannot be written."""
        self.energy_j = dict.fromkeys(simulation["rails"], 0.0)
        self._total = total_rails(simulation, board)
        self._last_ns: int | None = None
        self._total_file, self._rails_file = (
            os.open(sysroot.path(path), os.O_WRONLY) for path in (layout.ENERGY_FILE, layout.RAIL_ENERGY_FILE)
        )

    def add(self, now_ns: int, rails: Mapping[str, float]) -> float:
        """Add what the rails (in W) have drawn since the last call, and return how long ago that was, in s."""
        passed_s = 0.0 if self._last_ns is None else (now_ns - self._last_ns) / 1e9
        self._last_ns = now_ns
        for rail, watts in rails.items():
            self.energy_j[rail] += watts * passed_s
        total_j = sum(self.energy_j[rail] for rail in self._total)
        os.pwrite(self._total_file, f"{energy_line(now_ns, total_j)}\n".encode(), 0)
        os.pwrite(self._rails_file, f"{rail_lines(self.energy_j)}\n".encode(), 0)
        return passed_s

    def close(self) -> None:
        """Close the files."""
        os.close(self._total_file)
        os.close(self._rails_file)
