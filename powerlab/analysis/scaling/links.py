"""Models of links: a message of *n* bytes takes latency + *n* / bandwidth.

R. W. Hockney, The communication challenge for MPP, Parallel Computing 20(3), 1994. The named ones are typical figures,
chosen and not measured: an Ethernet frame's payload is 94.9 % of what goes over the wire. Whoever knows the links of a
cluster, from an MPI ping-pong, states them in numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from powerlab.analysis.operating_point.quantities import parse_quantity
from powerlab.domain.choices import meant
from powerlab.domain.errors import PowerlabError

_PAYLOAD = 0.949


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """What connects each node with the next one of the ring, in both directions at the same time.

    Attributes:
        name: what people call it.
        latency_s: of an empty message.
        bytes_per_s: of a long one.
    """

    name: str
    latency_s: float
    bytes_per_s: float

    def seconds(self, size: float) -> float:
        """Return how long a message of so many bytes takes."""
        return self.latency_s + size / self.bytes_per_s

    @property
    def words(self) -> str:
        """The model in words."""
        return f"{self.name}: {1e6 * self.latency_s:g} us + bytes / {self.bytes_per_s / 1e9:.4g} GB/s"


LINKS: Mapping[str, Link] = {
    link.name: link
    for link in (
        Link(name="1gbe", latency_s=50e-6, bytes_per_s=_PAYLOAD * 1e9 / 8),
        Link(name="10gbe", latency_s=25e-6, bytes_per_s=_PAYLOAD * 10e9 / 8),
        Link(name="100gbe", latency_s=5e-6, bytes_per_s=_PAYLOAD * 100e9 / 8),
        Link(name="hdr", latency_s=1.5e-6, bytes_per_s=24e9),
    )
}
"""Gigabit Ethernet by TCP, 10 of them, 100 with RDMA, and InfiniBand HDR."""
_DELAYS = {"us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0}
_RATES = {"GB/s": 1e9, "MB/s": 1e6, "Gbit/s": 1e9 / 8, "Mbit/s": 1e6 / 8}


def parse_link(text: str) -> Link:
    """Return the link of a name, or of two numbers such as ``30us:1.1GB/s``.

    Raises:
        PowerlabError: it is neither.
    """
    if text in LINKS:
        return LINKS[text]
    latency, colon, rate = text.partition(":")
    if not colon:
        close = meant(text, tuple(LINKS))
        raise PowerlabError(
            f"unknown link {text!r}{close}; choose from: {', '.join(LINKS)}, or state latency and bandwidth as in "
            "30us:1.1GB/s."
        )
    return Link(
        name=text,
        latency_s=parse_quantity("link's latency", latency, _DELAYS, "30us"),
        bytes_per_s=parse_quantity("link's bandwidth", rate, _RATES, "1.1GB/s"),
    )
