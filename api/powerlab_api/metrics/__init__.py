"""What a monitor such as Prometheus reads at ``/metrics``.

Some figures are of this process (:mod:`~powerlab_api.metrics.requests`, :mod:`~powerlab_api.metrics.process`), and end
with it; replicas have their own each. The others are of the database (:mod:`~powerlab_api.metrics.fleet`), and are the
same at every replica.
"""

from __future__ import annotations

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.exposition import choose_encoder

from powerlab.store import Store
from powerlab_api.metrics.fleet import FleetCollector
from powerlab_api.metrics.process import ServerCollector
from powerlab_api.metrics.requests import RequestMetrics
from powerlab_api.metrics.text import plain_text

OPENMETRICS = "application/openmetrics-text"
_END = b"# EOF\n"
"""Ends what is written in OpenMetrics."""


class Metrics:
    """All metrics of one application.

    Attributes:
        registry: what is shown.
        requests: what the middleware counts.
    """

    def __init__(self, store: Store) -> None:
        self._own = CollectorRegistry()
        self._fleet = FleetCollector(store)
        self.requests = RequestMetrics(self._own)
        self._own.register(ServerCollector(store))
        ProcessCollector(registry=self._own)
        self.registry = CollectorRegistry()
        self.registry.register(self._own)
        self.registry.register(self._fleet)

    def text(self, accept: str) -> tuple[bytes, str]:
        """Return them in the format that a request's ``Accept`` asks for, and the media type of that."""
        encode, kind = choose_encoder(accept)
        own: bytes = encode(self._own)
        openmetrics = kind.startswith(OPENMETRICS)
        fleet = plain_text(self._fleet.collect(), openmetrics=openmetrics).encode()
        return (own.removesuffix(_END) + fleet + _END if openmetrics else own + fleet), kind
