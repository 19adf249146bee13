"""Ways to sample the six rails of an AGX Xavier, started and stopped on demand: what ``sampler_cost.py`` compares.

Those of other tools are written from what the tools are known to do, without their code; where the package ``zeus`` is
installed, its own polling process is used.
"""

from __future__ import annotations

import asyncio
import importlib.util
import multiprocessing
import os
import queue
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from powerlab.native import _native
from powerlab.power.sampling.recorder import Recorder
from powerlab.sysroot import Sysroot

RAILS = ("GPU", "CPU", "SOC", "CV", "VDDRQ", "SYS5V")
ZEUS_RAILS = 3
"""Zeus knows a processor's, a graphics unit's and a total rail."""


class Way(Protocol):
    """One way to sample; ``rounds`` counts how often it has read its rails since it was made."""

    rounds: int

    def start(self) -> None: ...
    def stop(self) -> None: ...
    def children(self) -> list[int]: ...


def rail_files(tree: Path) -> list[tuple[Path, Path]]:
    """Return the files with the volts and the amperes of each rail."""
    chips = sorted(tree.glob("sys/bus/i2c/drivers/ina3221/*/hwmon/hwmon*"))
    return [(chip / f"in{n}_input", chip / f"curr{n}_input") for chip in chips for n in (1, 2, 3)]


class Native:
    """powerlab's recorder: the native thread, open files, one pread a value."""

    def __init__(self, tree: Path, period_s: float) -> None:
        self._recorder = Recorder(Sysroot(tree), [f"ina3221:{rail}" for rail in RAILS], period_s)
        self.rounds = 0

    def start(self) -> None:
        self._recorder.start()

    def stop(self) -> None:
        self._recorder.stop()
        self.rounds += self._recorder.rounds

    def children(self) -> list[int]:
        return []


class Waking:
    """The same thread without a file to read: what the kernel takes for waking a thread up so often."""

    def __init__(self, _tree: Path, period_s: float) -> None:
        self._sampler = _native.sampler.Sampler([], round(period_s * 1e9))
        self.rounds = 0

    def start(self) -> None:
        self._sampler.start()

    def stop(self) -> None:
        self._sampler.stop()
        self.rounds += self._sampler.rounds

    def children(self) -> list[int]:
        return []


class Looping:
    """A Python thread that calls ``once`` again and again at fixed moments; periods that were missed are skipped."""

    def __init__(self, period_s: float) -> None:
        self._period_s = period_s
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self.rounds = 0

    def once(self) -> None:
        raise NotImplementedError

    def start(self) -> None:
        self._stopping.clear()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()

    def children(self) -> list[int]:
        return []

    def _run(self) -> None:
        due_s = time.monotonic()
        while not self._stopping.wait(max(0.0, due_s - time.monotonic())):
            self.once()
            self.rounds += 1
            late = max(0.0, time.monotonic() - due_s) // self._period_s
            due_s += (late + 1) * self._period_s


class PythonLoop(Looping):
    """The loop people write first: open, read and parse each file, append the watts."""

    def __init__(self, tree: Path, period_s: float) -> None:
        super().__init__(period_s)
        self._files = rail_files(tree)
        self._samples: list[tuple[float, list[float]]] = []

    def once(self) -> None:
        watts = []
        for volts, amperes in self._files:
            with open(volts) as millivolts, open(amperes) as milliamperes:
                watts.append(int(millivolts.read()) * int(milliamperes.read()) * 1e-6)
        self._samples.append((time.time(), watts))


class JtopLike(Looping):
    """As a monitor of the whole board does: walk the chips each round, read labels, values and limits of each rail."""

    def __init__(self, tree: Path, period_s: float) -> None:
        super().__init__(period_s)
        self._drivers = tree / "sys/bus/i2c/drivers/ina3221"
        self._status: dict[str, dict[str, float]] = {}

    def once(self) -> None:
        status: dict[str, dict[str, float]] = {}
        for folder, _, names in os.walk(self._drivers):
            for name in names:
                if name.startswith("in") and name.endswith("_label"):
                    number = name.removeprefix("in").removesuffix("_label")
                    rail = self._read(folder, name)
                    values = {
                        "volt": f"in{number}_input",
                        "curr": f"curr{number}_input",
                        "warn": f"curr{number}_max",
                        "crit": f"curr{number}_crit",
                    }
                    found = {what: self._read(folder, file) for what, file in values.items() if file in names}
                    status[rail] = {what: float(text) for what, text in found.items()}
                    if "volt" in found and "curr" in found:
                        power = status[rail]["volt"] * status[rail]["curr"] / 1000
                        status[rail]["power"] = power
                        status[rail]["avg"] = (self._status.get(rail, {}).get("power", power) + power) / 2
        self._status = status

    @staticmethod
    def _read(folder: str, name: str) -> str:
        with open(os.path.join(folder, name)) as file:
            return file.readline().strip("\x00").rstrip("\n")


async def _zeus_like(commands: Any, results: Any, files: list[tuple[Path, Path]]) -> None:
    energy_mj, before_s = [0.0] * len(files), time.monotonic()
    while True:
        now_s = time.monotonic()
        for index, (volts, amperes) in enumerate(files):
            milliwatts = float(volts.read_text().strip()) * float(amperes.read_text().strip()) / 1000
            energy_mj[index] += milliwatts * (now_s - before_s)
        before_s = now_s
        try:
            command = await asyncio.to_thread(commands.get, timeout=0.1)
        except queue.Empty:
            continue
        if command is None:
            return
        results.put(list(energy_mj))


def _zeus_like_process(commands: Any, results: Any, files: list[tuple[Path, Path]]) -> None:
    asyncio.run(_zeus_like(commands, results, files))


class Zeus(Looping):
    """Zeus on a Jetson: a process that adds up energy, asked through two queues; here once a period."""

    def __init__(self, tree: Path, period_s: float) -> None:
        super().__init__(period_s)
        context = multiprocessing.get_context("spawn")
        self._commands, self._results = context.Queue(), context.Queue()
        files = rail_files(tree)[:ZEUS_RAILS]
        target: Callable[..., None] = _zeus_like_process
        handed: Any = files
        self._read: Any = "read"
        if zeus_version() is not None:
            from zeus.device.soc import jetson

            names = ("cpu_power_mw", "gpu_power_mw", "total_power_mw")
            handed = {name: jetson.VoltageCurrentProduct(*pair) for name, pair in zip(names, files, strict=True)}
            target, self._read = jetson._polling_process_async_wrapper, jetson.Command.READ
        self._process = context.Process(target=target, args=(self._commands, self._results, handed), daemon=True)
        self._process.start()
        self.once()

    def once(self) -> None:
        self._commands.put(self._read)
        self._results.get(timeout=15.0)

    def children(self) -> list[int]:
        return [] if self._process.pid is None else [self._process.pid]


def zeus_version() -> str | None:
    """Return the version of the package zeus where it is installed."""
    if importlib.util.find_spec("zeus") is None or importlib.util.find_spec("zeus.device.soc.jetson") is None:
        return None
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("zeus")
    except PackageNotFoundError:
        return None


WAYS: dict[str, Callable[[Path, float], Way]] = {
    "waking up alone": Waking,
    "powerlab": Native,
    "Python loop": PythonLoop,
    "jtop-like": JtopLike,
    "zeus": Zeus,
}
