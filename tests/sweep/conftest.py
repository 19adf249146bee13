"""A device on paper, a plan for it, and workers with a numpy backend."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from forked_workers import forked_workers
from powerlab.backends import registry
from powerlab.domain.device import Capabilities, Device
from powerlab.domain.mode import CURRENT_MODE, PowerMode
from powerlab.domain.sweep import SweepPlan


@pytest.fixture(scope="module", autouse=True)
def _forked_workers() -> Iterator[None]:
    """Spare each run the start of a Python; the worker's own tests have real ones (``tests/measure/worker``)."""
    with forked_workers():
        yield


FAKES = Path(__file__).parent.parent / "measure" / "fakes"


@pytest.fixture(scope="session")
def make_plan() -> Callable[..., SweepPlan]:
    def make(**changes: object) -> SweepPlan:
        fields: dict[str, object] = {"models": ("resnet50",), "threads": (1, 2), **changes}
        return SweepPlan(**fields)  # type: ignore[arg-type]

    return make


@pytest.fixture(scope="session")
def xavier() -> Device:
    return Device(
        name="bench-7",
        board="jetson-agx-xavier",
        architecture="aarch64",
        cpu_model="Carmel",
        core_count=8,
        memory_bytes=1 << 35,
        kernel="4.9.337",
        simulated=False,
    )


@pytest.fixture(scope="session")
def capabilities() -> Capabilities:
    return Capabilities(
        sources=(),
        total=None,
        modes=(
            CURRENT_MODE,
            PowerMode(name="MAXN", online_cores=8),
            PowerMode(name="MODE_15W", online_cores=4),
            PowerMode(name="MODE_10W", online_cores=2, requires_reboot=True),
        ),
    )


@pytest.fixture(scope="module")
def numpy_engine() -> Iterator[str]:
    """Add an engine that only the tests have, which worker processes can import too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(FAKES))
        patch.setitem(registry.BACKENDS, "numpy", "numpy_backend")
        yield "numpy"


class RaplTree:
    """A package whose energy counter a thread moves at a known power, as the kernel's RAPL driver shows it."""

    START_UJ = 10_000_000_000

    def __init__(self, base: Path, power_w: float) -> None:
        zone = base / "sys/class/powercap/intel-rapl:0"
        zone.mkdir(parents=True)
        (zone / "name").write_text("package-0\n")
        (zone / "enabled").write_text("1\n")
        (zone / "max_energy_range_uj").write_text("262143328850\n")
        self._counter = os.open(zone / "energy_uj", os.O_CREAT | os.O_WRONLY, 0o600)
        self._power_w = power_w
        self._begin_ns = time.monotonic_ns()
        self._stop = threading.Event()
        self._write()
        self._thread = threading.Thread(target=self._move)
        self._thread.start()

    def _write(self) -> None:
        energy_uj = self.START_UJ + int(self._power_w * (time.monotonic_ns() - self._begin_ns) / 1e3)
        os.pwrite(self._counter, b"%d\n" % energy_uj, 0)

    def _move(self) -> None:
        while not self._stop.wait(0.001):
            self._write()

    def close(self) -> None:
        self._stop.set()
        self._thread.join()
        os.close(self._counter)


@pytest.fixture(scope="module")
def rapl_tree(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yield the root of a machine whose package takes 15 W, whatever it does."""
    base = tmp_path_factory.mktemp("machine")
    tree = RaplTree(base, power_w=15.0)
    yield base
    tree.close()
