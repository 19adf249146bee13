"""Where things lie in a simulated board's tree, for those who write it and those who read it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from powerlab.boards.board import Board
from powerlab.boards.registry import board_document, find_board
from powerlab.domain.errors import PowerlabError
from powerlab.sysroot import SIMULATION_MARKER, Sysroot

CPU = "/sys/devices/system/cpu"
CGROUP = "/sys/fs/cgroup/powerlab"
"""The control group whose CPU quota the simulated load is under."""
LOAD_DIRECTORY = "/simulation/load"
ENERGY_FILE = "/simulation/energy"
"""CLOCK_MONOTONIC in ns and the board's true energy since the simulator's start in µJ."""
RAIL_ENERGY_FILE = "/simulation/rail-energy"
"""The same for each rail: one line ``µJ name`` a rail."""
CAPS_FILE = "/simulation/caps"
"""What heat and limits leave of the clocks, as shares of the highest: lines of ``cpu 0.850``."""
FAULTS_FILE = "/simulation/faults"
"""The faults in force, one a line."""
CLOCK_FILE = "/simulation/clock-offset"
"""How far the board's wall clock is ahead of this machine's, in s; programs in the tree that print the time add it."""
ROOM_FILE = "/simulation/room"
"""The temperature around the board in m°C; write another to see it heat up or cool down."""
REBOOT_FILE = "/simulation/reboot"
"""Is there while the board was asked to reboot and has not yet."""
SENSOR_WIDTH = 8
"""Sensor files are rewritten in place, so every text has the same width: a reader never sees half a number."""
_READ_BYTES = 4096


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


def choose_jetpack(board: Board, jetpack: int | None) -> int | None:
    """Return the JetPack to simulate: the one asked for, else the board's first; None for a board that has none.

    Raises:
        PowerlabError: the board never had that one.
    """
    if jetpack is None:
        return board.jetpacks[0] if board.jetpacks else None
    if jetpack not in board.jetpacks:
        offered = " or ".join(map(str, board.jetpacks))
        what = f"choose {offered}" if offered else "leave --jetpack out: this board has none"
        raise PowerlabError(f"JetPack {jetpack} is not simulated for {board.name}; {what}.")
    return jetpack


def variant_of(jetpack: int | None) -> str:
    """Return the word that tells parts which of a board's software releases to look like."""
    return "" if jetpack is None else f"jetpack{jetpack}"


def variant_value(value: Any, variant: str) -> Any:
    """Return a value for a variant: a table with the variant as a key holds one for each, all else holds for all."""
    return value[variant] if isinstance(value, Mapping) and variant in value else value


def read_marker(sysroot: Sysroot) -> Mapping[str, Any]:
    """Return what the marker file of a simulated tree says: ``board`` and ``jetpack`` (None for boards without).

    Raises:
        PowerlabError: the directory is not a simulated board.
    """
    try:
        marker = json.loads(sysroot.read(SIMULATION_MARKER))
        jetpack = marker["jetpack"]
        return {"board": str(marker["board"]), "jetpack": None if jetpack is None else int(jetpack)}
    except (OSError, ValueError, TypeError, KeyError):
        raise PowerlabError(
            f"{sysroot.base} is not a simulated board; write one with `powerlab boards simulate NAME DIR`."
        ) from None


def sensor_text(value: int, width: int = SENSOR_WIDTH) -> bytes:
    """Return a reading as the tree's sensor files hold it; energy counters need a greater width."""
    return f"{value:<{width}d}\n".encode()


def first_line(path: Path | str) -> str:
    """Return a file's first line without white space; a file rewritten in place may hold a rest behind it.

    Raises:
        OSError: it cannot be read.
    """
    handle = os.open(path, os.O_RDONLY)
    try:
        text = os.read(handle, _READ_BYTES)
    finally:
        os.close(handle)
    return text.decode("utf-8", "replace").partition("\n")[0].strip()


def rewrite(path: Path | str, text: str) -> None:
    """Replace a file's text in place without a moment in which it is empty."""
    handle = os.open(path, os.O_WRONLY)
    try:
        os.ftruncate(handle, os.pwrite(handle, f"{text}\n".encode(), 0))
    finally:
        os.close(handle)


def line_of(sysroot: Sysroot, path: str) -> str:
    """Return the first line of a file of a tree; joins text, because a board with many cores reads hundreds of files.

    Raises:
        OSError: it cannot be read.
    """
    return first_line(f"{sysroot.base}{path}")


def put(sysroot: Sysroot, path: str, text: str) -> None:
    """Rewrite a file of a tree where it does not hold the text already.

    Raises:
        OSError: it cannot be read or written.
    """
    if line_of(sysroot, path) != text:
        rewrite(f"{sysroot.base}{path}", text)
