"""Writes the files of a simulated board."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from powerlab.boards.board import Board
from powerlab.boards.registry import find_board
from powerlab.boards.simulator import layout
from powerlab.boards.simulator.clusters import core_numbers
from powerlab.boards.simulator.ledger import energy_line, rail_lines
from powerlab.boards.simulator.parts.base import Files, Part
from powerlab.boards.simulator.parts.registry import parts_of
from powerlab.boards.simulator.physics import PowerModel, components_w, rails_w
from powerlab.boards.simulator.start import start_settings
from powerlab.boards.simulator.warmth import ROOM_C
from powerlab.domain.errors import PowerlabError
from powerlab.sysroot import SIMULATION_MARKER

_DIRECTORIES = ("/run/lock", layout.LOAD_DIRECTORY)


def create_tree(board_name: str, directory: str | Path, jetpack: int | None = None) -> None:
    """Write the root directory of a simulated board; the same arguments give the same files.

    Args:
        board_name: a board of ``powerlab boards`` that can be simulated.
        directory: a directory that does not exist yet or is empty.
        jetpack: the JetPack whose files a Jetson shows; None is the first that ``powerlab boards show`` names.

    Raises:
        PowerlabError: the board cannot be simulated, or the directory holds files or cannot be written.
    """
    board, simulation, root = find_board(board_name), layout.simulation_of(board_name), Path(directory)
    jetpack = layout.choose_jetpack(board, jetpack)
    parts = parts_of(board, simulation, layout.variant_of(jetpack))
    try:
        if root.exists() and any(root.iterdir()):
            raise PowerlabError(f"{root} is not empty; give a directory that does not exist yet.")
        for path, text in boot_files(board, simulation, jetpack):
            _write(root, path, text)
        for path in _DIRECTORIES:
            (root / path.lstrip("/")).mkdir(parents=True, exist_ok=True)
        for part in parts:
            _write_part(root, part)
        # The marker comes last: a tree that was not finished is not taken for a board.
        marker = {"board": board.name, "jetpack": jetpack, "note": "every figure read from this tree is simulated"}
        _write(root, SIMULATION_MARKER, json.dumps(marker, indent=2))
    except OSError as error:
        raise PowerlabError(f"the tree cannot be written to {root} ({error.strerror}); choose another place.") from None


def boot_files(board: Board, simulation: Mapping[str, Any], jetpack: int | None) -> Files:
    """Yield every plain file of a board and what it holds when the board has booted for the first time."""
    yield from _files(board, simulation, jetpack)
    yield from _part_files(parts_of(board, simulation, layout.variant_of(jetpack)), board, simulation, jetpack)


def _write(root: Path, path: str, text: str) -> None:
    file = _below(root, path)
    file.write_text(text if path.startswith("/proc/device-tree") else text + "\n", encoding="utf-8")


def _below(root: Path, path: str) -> Path:
    file = root / path.lstrip("/")
    file.parent.mkdir(parents=True, exist_ok=True)
    return file


def _write_part(root: Path, part: Part) -> None:
    """Write what of a part is not a regular file."""
    for path, target in part.links():
        _below(root, path).symlink_to(target)
    for path, original in part.copies():
        shutil.copy(original, _below(root, path))
    for path, table in part.tables():
        _below(root, path).write_bytes(table)
    # A shebang holds neither blanks nor long paths, so the shell finds the interpreter: to Python the line is a string.
    head = f"#!/bin/sh\n'''exec' {shlex.quote(sys.executable)} -IS \"$0\" \"$@\"\n' '''\n"
    for path, source in part.programs():
        program = _below(root, path)
        program.write_text(head + source, encoding="utf-8")
        program.chmod(0o755)


def _part_files(parts: list[Part], board: Board, simulation: Mapping[str, Any], jetpack: int | None) -> Files:
    idle = start_settings(board, simulation, jetpack).state(busy_threads=0)
    idle_w = rails_w(simulation["rails"], components_w(PowerModel.from_document(simulation), idle))
    for part in parts:
        yield from part.files(idle_w)


def _files(board: Board, simulation: Mapping[str, Any], jetpack: int | None) -> Files:
    """Yield what every board has."""
    yield from _identity(board, simulation)
    processors = (f"processor\t: {core}\nmodel name\t: {simulation['cpu_name']}\n" for core in core_numbers(simulation))
    yield "/proc/cpuinfo", "\n".join(processors)
    yield "/proc/meminfo", f"MemTotal:       {simulation['memory_kb']} kB"
    yield "/proc/sys/kernel/osrelease", layout.variant_value(simulation["kernel"], layout.variant_of(jetpack))
    yield "/proc/sys/kernel/random/boot_id", str(uuid.uuid5(uuid.NAMESPACE_DNS, f"{board.name}.simulated"))
    yield "/sys/fs/cgroup/cgroup.controllers", "cpuset cpu io memory pids"
    yield "/sys/fs/cgroup/cgroup.subtree_control", "cpuset cpu io memory pids"
    yield f"{layout.CGROUP}/cpu.max", "max 100000"
    yield f"{layout.CGROUP}/cgroup.procs", ""
    yield layout.ENERGY_FILE, energy_line(0, 0.0)
    yield layout.RAIL_ENERGY_FILE, rail_lines(dict.fromkeys(simulation["rails"], 0.0))
    yield layout.CAPS_FILE, ""
    yield layout.FAULTS_FILE, ""
    yield layout.CLOCK_FILE, "0"
    yield layout.ROOM_FILE, str(round(simulation.get("thermal", {}).get("room_c", ROOM_C) * 1000))


def _identity(board: Board, simulation: Mapping[str, Any]) -> Files:
    """Yield what tells the board from others: its device tree, and what ``[simulation.files]`` holds."""
    if board.compatible:
        yield "/proc/device-tree/model", board.models[0] + "\0"
        strings = (board.compatible[0], *simulation.get("compatible_soc", ()))
        yield "/proc/device-tree/compatible", "".join(f"{text}\0" for text in strings)
    yield from simulation.get("files", {}).items()
