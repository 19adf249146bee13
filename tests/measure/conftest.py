"""Traces with a known truth, and a backend made of numpy that a worker can load."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest

from forked_workers import forked_workers
from powerlab.domain.power import Rail, RailQuantity, Trace
from powerlab.domain.quantity import Provenance

MakeRail = Callable[..., Rail]
MakeTrace = Callable[..., Trace]


@pytest.fixture(scope="session")
def make_rail() -> MakeRail:
    def make(name: str = "package-0", quantity: RailQuantity = RailQuantity.POWER, **changes: object) -> Rail:
        fields: dict[str, object] = {
            "source": "rapl" if quantity is RailQuantity.ENERGY else "ina3221",
            "name": name,
            "quantity": quantity,
            "resolution": 0.0,
            "relative_error": 0.0,
            "update_period_s": 0.0,
            "provenance": Provenance.MEASURED,
        }
        return Rail(**{**fields, **changes})  # type: ignore[arg-type]

    return make


@pytest.fixture(scope="session")
def make_trace(make_rail: MakeRail) -> MakeTrace:
    def make(time_s: object, value: object, rail: Rail | None = None, read_cost_ns: int = 0) -> Trace:
        return Trace(
            rail=rail or make_rail(),
            time_ns=np.round(np.asarray(time_s, dtype=float) * 1e9).astype(np.int64),
            value=np.asarray(value, dtype=np.float64),
            read_cost_ns=read_cost_ns,
        )

    return make


@pytest.fixture(scope="module", autouse=True)
def _forked_workers(request: pytest.FixtureRequest) -> Iterator[None]:
    """Spare each run the start of a Python, but for the tests of workers themselves."""
    with nullcontext() if request.path.parent.name == "worker" else forked_workers():
        yield


@pytest.fixture
def fakes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let worker processes import the modules of ``tests/measure/fakes``."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent / "fakes"))
