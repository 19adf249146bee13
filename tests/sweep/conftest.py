"""A device on paper, a plan for it, and workers with a numpy backend."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from powerlab.backends import registry
from powerlab.domain.device import Capabilities, Device
from powerlab.domain.mode import CURRENT_MODE, PowerMode
from powerlab.domain.sweep import SweepPlan

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


@pytest.fixture
def numpy_engine(monkeypatch: pytest.MonkeyPatch) -> str:
    """Add an engine that only the tests have, which worker processes can import too."""
    monkeypatch.setenv("PYTHONPATH", str(FAKES))
    monkeypatch.setitem(registry.BACKENDS, "numpy", "numpy_backend")
    return "numpy"
