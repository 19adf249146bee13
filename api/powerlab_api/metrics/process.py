"""Metrics of this server process and its database connections."""

from __future__ import annotations

import platform
from collections.abc import Iterator

from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily, InfoMetricFamily
from prometheus_client.registry import Collector
from sqlalchemy.pool import QueuePool

from powerlab import __version__
from powerlab.protocol import PROTOCOL_VERSION
from powerlab.store import Store


class ServerCollector(Collector):
    """Asks for nothing that is not at hand."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def collect(self) -> Iterator[Metric]:
        """Yield the figures as they are now."""
        yield InfoMetricFamily(
            "powerlab_build",
            "The server's version, that of its protocol, and what it runs on.",
            {
                "version": __version__,
                "protocol": str(PROTOCOL_VERSION),
                "python": platform.python_version(),
                "database": self._store.engine.dialect.name,
            },
        )
        pool = self._store.engine.pool
        if isinstance(pool, QueuePool):
            connections = GaugeMetricFamily(
                "powerlab_database_connections", "Connections of this process to the database.", labels=("state",)
            )
            connections.add_metric(("in_use",), pool.checkedout())
            connections.add_metric(("idle",), pool.checkedin())
            yield connections
