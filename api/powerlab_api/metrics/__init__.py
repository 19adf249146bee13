"""What a monitor such as Prometheus reads at ``/metrics``.

Some figures are of this process (:mod:`~powerlab_api.metrics.requests`, :mod:`~powerlab_api.metrics.process`), and end
with it; replicas have their own each. The others are of the database (:mod:`~powerlab_api.metrics.fleet`), and are the
same at every replica.
"""

from __future__ import annotations

from prometheus_client import CollectorRegistry, ProcessCollector

from powerlab.store import Store
from powerlab_api.metrics.fleet import FleetCollector
from powerlab_api.metrics.process import ServerCollector
from powerlab_api.metrics.requests import RequestMetrics


class Metrics:
    """All metrics of one application.

    Attributes:
        registry: what is shown.
        requests: what the middleware counts.
    """

    def __init__(self, store: Store) -> None:
        self.registry = CollectorRegistry()
        self.requests = RequestMetrics(self.registry)
        self.registry.register(ServerCollector(store))
        self.registry.register(FleetCollector(store))
        ProcessCollector(registry=self.registry)
