"""Moves a simulated board's sensors: the part of the board that is not a file."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from powerlab.boards.registry import find_board
from powerlab.boards.simulator import layout
from powerlab.boards.simulator.load import busy_threads
from powerlab.boards.simulator.physics import PowerModel, noisy, power_w, quantised
from powerlab.boards.simulator.state import Settings, read_settings
from powerlab.domain.errors import PowerlabError
from powerlab.sysroot import Sysroot

TICK_S = 0.01
_SLOW_TICKS = 5
_ROOM_C = 30.0
_K_PER_W = 1.1
_THERMAL_TIME_S = 20.0


class Simulator:
    """A running simulated board: :meth:`tick` rewrites its sensor files for the present moment."""

    def __init__(self, sysroot: Sysroot, seed: int = 0) -> None:
        """Open the tree's sensor files.

        Raises:
            PowerlabError: the directory is no simulated board.
            OSError: a file is missing or cannot be written.
        """
        marker = layout.read_marker(sysroot)
        board = find_board(marker["board"])
        self._sysroot = sysroot
        self._simulation = layout.simulation_of(board.name)
        self._core_count = board.core_count or 1
        self._model = PowerModel.from_document(self._simulation)
        self._noise = random.Random(seed)  # noqa: S311 - ripple, not a secret
        self._sensors = {
            name: {
                kind: os.open(sysroot.path(path), os.O_WRONLY)
                for kind, path in layout.sensor_files(marker["jetpack"], chip.address, number, channel).items()
            }
            for number, chip in enumerate(board.chips)
            for channel, name in enumerate(chip.channels)
        }
        self._energy = os.open(sysroot.path(layout.ENERGY_FILE), os.O_WRONLY)
        self._energy_j = 0.0
        self._last_ns: int | None = None
        self._warmth_c = _ROOM_C
        self._ticks = 0
        self._settings = self._read_settings()

    def _read_settings(self) -> Settings:
        return read_settings(self._sysroot, self._simulation, self._core_count)

    def tick(self, now_ns: int) -> dict[str, float]:
        """Rewrite the sensor files for ``now_ns`` (CLOCK_MONOTONIC) and return the true power of each rail in W."""
        busy = busy_threads(self._sysroot)
        if self._ticks % _SLOW_TICKS == 0:
            self._follow_settings(busy)
        self._ticks += 1
        true_w = power_w(self._model, self._settings.state(busy))
        for name, files in self._sensors.items():
            drawn_w = noisy(true_w[name], self._noise)
            reading = quantised(drawn_w, self._simulation["supply_mv"], self._simulation["shunt_uohm"])
            for kind, value in reading.values().items():
                if kind in files:
                    os.pwrite(files[kind], layout.sensor_text(value), 0)
        self._add_up(now_ns, sum(true_w.values()))
        return true_w

    def _follow_settings(self, busy: int) -> None:
        try:
            self._settings = self._read_settings()
        except (OSError, ValueError):
            return  # somebody is writing that file just now: the board keeps its settings until the next look
        self._follow_hotplug()
        cores_left = busy
        for policy in self._settings.policies:
            working = min(cores_left, len(policy.online_cores))
            cores_left -= working
            current = policy.busy_khz if working else policy.idle_khz
            layout.rewrite(self._sysroot.path(f"{layout.CPU}/cpufreq/{policy.name}/scaling_cur_freq"), str(current))
        for zone in (0, 1):
            path = self._sysroot.path(f"/sys/class/thermal/thermal_zone{zone}/temp")
            layout.rewrite(path, str(round(self._warmth_c * 1000)))

    def _follow_hotplug(self) -> None:
        """Keep the kernel's own lists of online cores up to date when cores were switched one by one."""
        online = self._settings.online_cores
        lists = {
            "online": ",".join(map(str, online)),
            "offline": ",".join(str(core) for core in range(self._core_count) if core not in online),
        }
        for policy in self._settings.policies:
            lists[f"cpufreq/{policy.name}/affected_cpus"] = " ".join(map(str, policy.online_cores))
        for name, text in lists.items():
            path = self._sysroot.path(f"{layout.CPU}/{name}")
            if layout.first_line(path) != text:
                layout.rewrite(path, text)

    def _add_up(self, now_ns: int, total_w: float) -> None:
        """Keep the true energy since the start beside its moment, for whoever wants to check a measurement."""
        passed_s = 0.0 if self._last_ns is None else (now_ns - self._last_ns) / 1e9
        self._last_ns = now_ns
        self._energy_j += total_w * passed_s
        self._warmth_c += (_ROOM_C + _K_PER_W * total_w - self._warmth_c) * min(1.0, passed_s / _THERMAL_TIME_S)
        os.pwrite(self._energy, f"{now_ns:20d} {round(self._energy_j * 1e6):20d}\n".encode(), 0)

    def close(self) -> None:
        """Close the sensor files; they keep their last values, as a stopped clock does."""
        for files in self._sensors.values():
            for handle in files.values():
                os.close(handle)
        self._sensors = {}
        os.close(self._energy)


def run(directory: str | Path, going_on: Callable[[], bool], ready: Callable[[], None]) -> None:
    """Move the sensors of the tree in ``directory`` every 10 ms while ``going_on()``; call ``ready`` after the first.

    It also ends when the tree is removed: there is no board any more.

    Raises:
        PowerlabError: the directory is no simulated board, or a damaged one.
    """
    sysroot = Sysroot(Path(directory))
    layout.read_marker(sysroot)
    try:
        with closing(Simulator(sysroot)) as simulator:
            simulator.tick(time.monotonic_ns())
            ready()
            while going_on():
                time.sleep(TICK_S)
                simulator.tick(time.monotonic_ns())
    except (OSError, ValueError) as error:
        if sysroot.simulated:
            raise PowerlabError(
                f"the simulated board in {directory} is damaged ({error}); write a new one with"
                " `powerlab boards simulate NAME DIR`."
            ) from None
