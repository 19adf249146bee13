"""Where things lie in a simulated board's tree, for those who write it and those who read it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from powerlab.boards.registry import board_document, find_board
from powerlab.domain.errors import PowerlabError
from powerlab.sysroot import SIMULATION_MARKER, Sysroot

CPU = "/sys/devices/system/cpu"
EMC_CAP = "/sys/kernel/nvpmodel_emc_cap/emc_iso_cap"
LOAD_DIRECTORY = "/simulation/load"
ENERGY_FILE = "/simulation/energy"
SENSOR_WIDTH = 8
"""Sensor files are rewritten in place, so every text has the same width: a reader never sees half a number."""


def simulation_of(board_name: str) -> Mapping[str, Any]:
    """Return the ``[simulation]`` table of a board's file.

    Raises:
        PowerlabError: there is no such board, or it cannot be simulated.
    """
    board = find_board(board_name)
    simulation: Mapping[str, Any] | None = board_document(board_name).get("simulation")
    if simulation is None:
        raise PowerlabError(f"{board.name} has no simulator; `powerlab boards` shows which boards can be simulated.")
    return simulation


def read_marker(sysroot: Sysroot) -> Mapping[str, Any]:
    """Return what the marker file of a simulated tree says: ``board`` and ``jetpack``.

    Raises:
        PowerlabError: the directory is no simulated board.
    """
    try:
        marker = json.loads(sysroot.read(SIMULATION_MARKER))
        return {"board": str(marker["board"]), "jetpack": int(marker["jetpack"])}
    except (OSError, ValueError, TypeError, KeyError):
        raise PowerlabError(
            f"{sysroot.base} is no simulated board; write one with `powerlab boards simulate NAME DIR`."
        ) from None


def gpu_directory(simulation: Mapping[str, Any]) -> str:
    """Return the GPU's directory in sysfs."""
    return f"/sys/devices/{simulation['gpu_device']}"


def gpu_devfreq(simulation: Mapping[str, Any]) -> str:
    """Return the directory of the GPU's clock."""
    return f"{gpu_directory(simulation)}/devfreq/{simulation['gpu_device']}"


def sensor_files(jetpack: int, address: str, chip_number: int, channel: int) -> dict[str, str]:
    """Return the files of one monitor channel (0-based): ``voltage``, ``current`` and, with JetPack 4, ``power``."""
    if jetpack == 4:
        chip = f"/sys/bus/i2c/drivers/ina3221x/{address}/iio:device{chip_number}"
        return {kind: f"{chip}/in_{kind}{channel}_input" for kind in ("voltage", "current", "power")}
    chip = f"/sys/bus/i2c/drivers/ina3221/{address}/hwmon/hwmon{chip_number}"
    return {"voltage": f"{chip}/in{channel + 1}_input", "current": f"{chip}/curr{channel + 1}_input"}


def sensor_text(value: int) -> bytes:
    """Return a reading as the tree's sensor files hold it."""
    return f"{value:<{SENSOR_WIDTH}d}\n".encode()


def first_line(path: Path) -> str:
    """Return a file's first line without white space; a file rewritten in place may hold a rest behind it."""
    with path.open("rb") as file:
        return file.readline().decode("utf-8", "replace").strip()


def rewrite(path: Path, text: str) -> None:
    """Replace a file's text in place without a moment in which it is empty."""
    handle = os.open(path, os.O_WRONLY)
    try:
        os.ftruncate(handle, os.pwrite(handle, f"{text}\n".encode(), 0))
    finally:
        os.close(handle)
