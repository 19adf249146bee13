"""Writes the files of a simulated board."""

from __future__ import annotations

import json
import shlex
import sys
import uuid
from collections.abc import Iterator, Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from powerlab.boards.board import Board
from powerlab.boards.registry import find_board
from powerlab.boards.simulator import layout
from powerlab.boards.simulator.monitors import monitor_files, monitor_links
from powerlab.boards.simulator.nvpmodel_conf import render_conf
from powerlab.domain.errors import PowerlabError
from powerlab.sysroot import SIMULATION_MARKER

_JETPACKS = (4, 5)
_START_MODE = 0
_DEFAULT_MODE = 2
_PMIC_ALWAYS_M_C = 100000
_ROOM_M_C = 30000

Files = Iterator[tuple[str, str]]


def create_tree(board_name: str, directory: str | Path, jetpack: int = 4) -> None:
    """Write the root directory of a simulated board; the same arguments give the same files.

    Args:
        board_name: a board of ``powerlab boards`` that can be simulated.
        directory: a directory that does not exist yet or is empty.
        jetpack: 4 writes the INA3221 files of the iio driver, 5 those of the hwmon driver.

    Raises:
        PowerlabError: the board cannot be simulated, or the directory holds files or cannot be written.
    """
    board, simulation, root = find_board(board_name), layout.simulation_of(board_name), Path(directory)
    if jetpack not in _JETPACKS:
        raise PowerlabError(f"JetPack {jetpack} is not simulated; choose {' or '.join(map(str, _JETPACKS))}.")
    try:
        if root.exists() and any(root.iterdir()):
            raise PowerlabError(f"{root} is not empty; give a directory that does not exist yet.")
        for path, text in _files(board, simulation, jetpack):
            _write(root, path, text)
        for path, target in _links(board, simulation, jetpack):
            (root / path.lstrip("/")).parent.mkdir(parents=True, exist_ok=True)
            (root / path.lstrip("/")).symlink_to(target)
        for path in ("/run/lock", layout.LOAD_DIRECTORY):
            (root / path.lstrip("/")).mkdir(parents=True)
        _write_program(root)
        # The marker comes last: a tree that was not finished is not taken for a board.
        marker = {"board": board.name, "jetpack": jetpack, "note": "every figure read from this tree is simulated"}
        _write(root, SIMULATION_MARKER, json.dumps(marker, indent=2))
    except OSError as error:
        raise PowerlabError(f"the tree cannot be written to {root} ({error.strerror}); choose another place.") from None


def _write(root: Path, path: str, text: str) -> None:
    file = root / path.lstrip("/")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text if path.startswith("/proc/device-tree") else text + "\n", encoding="utf-8")


def _write_program(root: Path) -> None:
    source = (resources.files("powerlab.boards.simulator") / "nvpmodel_program.py").read_text(encoding="utf-8")
    # A shebang holds neither blanks nor long paths, so the shell finds the interpreter: to Python the line is a string.
    head = f"#!/bin/sh\n'''exec' {shlex.quote(sys.executable)} -IS \"$0\" \"$@\"\n' '''\n"
    program = root / "usr/sbin/nvpmodel"
    program.parent.mkdir(parents=True)
    program.write_text(head + source, encoding="utf-8")
    program.chmod(0o755)


def _files(board: Board, simulation: Mapping[str, Any], jetpack: int) -> Files:
    cores = board.core_count or 1
    yield "/proc/device-tree/model", board.models[0] + "\0"
    yield "/proc/device-tree/compatible", board.compatible[0] + "\0nvidia,tegra194\0"
    yield (
        "/proc/cpuinfo",
        "\n".join(f"processor\t: {core}\nmodel name\t: {simulation['cpu']}\n" for core in range(cores)),
    )
    yield "/proc/meminfo", f"MemTotal:       {simulation['memory_kb']} kB"
    yield "/proc/sys/kernel/osrelease", simulation["kernel"][str(jetpack)]
    yield "/proc/sys/kernel/random/boot_id", str(uuid.uuid5(uuid.NAMESPACE_DNS, f"{board.name}.simulated"))
    yield "/etc/nvpmodel.conf", render_conf(cores, simulation, board.vendor_modes, _DEFAULT_MODE)
    yield "/var/lib/nvpmodel/status", f"pmode:{_START_MODE:04d}"
    yield layout.ENERGY_FILE, f"{0:20d} {0:20d}"
    yield from _cpu_files(cores, simulation)
    yield from _gpu_files(simulation)
    yield layout.EMC_CAP, "0"
    for zone, (kind, temperature) in enumerate(
        (("CPU-therm", _ROOM_M_C), ("GPU-therm", _ROOM_M_C), ("PMIC-Die", _PMIC_ALWAYS_M_C))
    ):
        yield f"/sys/class/thermal/thermal_zone{zone}/type", kind
        yield f"/sys/class/thermal/thermal_zone{zone}/temp", str(temperature)
    yield from monitor_files(board, simulation, jetpack)


def _cpu_files(cores: int, simulation: Mapping[str, Any]) -> Files:
    frequencies, size = simulation["cpu_freqs_khz"], simulation["cores_per_policy"]
    start_min = max(freq for freq in frequencies if freq <= simulation["cpu_min_khz"])
    yield f"{layout.CPU}/online", ",".join(map(str, range(cores)))
    yield f"{layout.CPU}/offline", ""
    yield f"{layout.CPU}/present", f"0-{cores - 1}"
    yield f"{layout.CPU}/possible", f"0-{cores - 1}"
    for core in range(cores):
        yield f"{layout.CPU}/cpu{core}/online", "1"
        yield f"{layout.CPU}/cpu{core}/topology/core_id", str(core % size)
        yield f"{layout.CPU}/cpu{core}/topology/physical_package_id", str(core // size)
    for first in range(0, cores, size):
        policy = f"{layout.CPU}/cpufreq/policy{first}"
        members = " ".join(map(str, range(first, min(first + size, cores))))
        yield f"{policy}/affected_cpus", members
        yield f"{policy}/related_cpus", members
        yield f"{policy}/cpuinfo_min_freq", str(frequencies[0])
        yield f"{policy}/cpuinfo_max_freq", str(frequencies[-1])
        yield f"{policy}/cpuinfo_transition_latency", "300000"
        yield f"{policy}/scaling_available_frequencies", " ".join(map(str, frequencies))
        yield f"{policy}/scaling_available_governors", " ".join(simulation["governors"])
        yield f"{policy}/scaling_cur_freq", str(start_min)
        yield f"{policy}/scaling_driver", "tegra_cpufreq"
        yield f"{policy}/scaling_governor", simulation["governor"]
        yield f"{policy}/scaling_min_freq", str(start_min)
        yield f"{policy}/scaling_max_freq", str(frequencies[-1])
        yield f"{policy}/scaling_setspeed", "<unsupported>"


def _gpu_files(simulation: Mapping[str, Any]) -> Files:
    gpu, devfreq, clocks = layout.gpu_directory(simulation), layout.gpu_devfreq(simulation), simulation["gpu_freqs_hz"]
    yield f"{gpu}/tpc_pg_mask", "0"
    yield f"{gpu}/power/control", "on"
    yield f"{gpu}/load", "0"
    yield f"{devfreq}/available_frequencies", " ".join(map(str, clocks))
    yield f"{devfreq}/governor", "nvhost_podgov"
    yield f"{devfreq}/cur_freq", str(simulation["gpu_min_hz"])
    yield f"{devfreq}/min_freq", str(simulation["gpu_min_hz"])
    yield f"{devfreq}/max_freq", str(clocks[-1])


def _links(board: Board, simulation: Mapping[str, Any], jetpack: int) -> Files:
    size = simulation["cores_per_policy"]
    for core in range(board.core_count or 1):
        yield f"{layout.CPU}/cpu{core}/cpufreq", f"../cpufreq/policy{core - core % size}"
    yield "/sys/devices/gpu.0", simulation["gpu_device"]
    yield from monitor_links(board, jetpack)
