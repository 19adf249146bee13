"""What is shown at /metrics, by name."""

from __future__ import annotations

from pathlib import Path

import pytest
from prometheus_client import Metric

from fresh_store import fresh_store
from powerlab_api.app import create_app
from powerlab_api.metrics import Metrics

ROOT = Path(__file__).resolve().parents[2]
_ENDINGS = {"counter": ("_total",), "info": ("_info",), "histogram": ("_bucket", "_count", "_sum")}


def shown_names(families: list[Metric]) -> dict[str, set[str]]:
    """Return by a metric's name in the pages the names of its series."""
    own = [family for family in families if family.name.startswith("powerlab_")]
    names = {}
    for family in own:
        endings = _ENDINGS.get(family.type, ("",))
        named = family.name if family.type == "histogram" else family.name + endings[0]
        names[named] = {family.name + ending for ending in endings}
    return names


@pytest.fixture
def server_metrics(tmp_path: Path) -> dict[str, set[str]]:
    """Every metric of a server; one without a value is there too, without a series."""
    store = fresh_store(tmp_path / "powerlab.db")
    metrics: Metrics = create_app(store).state.metrics
    names = shown_names(list(metrics.registry.collect()))
    store.close()
    return names


@pytest.fixture(scope="session")
def operations_page() -> str:
    """The page for whoever runs powerlab."""
    return (ROOT / "docs" / "guides" / "operations.md").read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository."""
    return ROOT
