"""The CPU of a simulated board as its file states it: clusters of equal cores, each cut into cpufreq policies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """Cores of one kind.

    Attributes:
        name: for example ``a57``.
        cores: their numbers.
        freqs_khz: the clocks they can run at, ascending.
        start_min_khz: the lower limit of their clock at boot, as the vendor states it.
        cores_per_policy: how many neighbours share a clock.
        package: the socket they sit in.
        speed: work done per clock, relative to the board's fastest kind of core.
        switching: power drawn per clock and V², relative to the board's ``core_w_per_ghz_v2``.
    """

    name: str
    cores: tuple[int, ...]
    freqs_khz: tuple[int, ...]
    start_min_khz: int
    cores_per_policy: int
    package: int = 0
    speed: float = 1.0
    switching: float = 1.0

    @property
    def low_khz(self) -> int:
        """That limit as the kernel rounds it."""
        return max((freq for freq in self.freqs_khz if freq <= self.start_min_khz), default=self.freqs_khz[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Cores that share a clock, under the name cpufreq gives them: that of the first."""

    name: str
    cores: tuple[int, ...]
    cluster: Cluster


def parse_cores(text: str) -> tuple[int, ...]:
    """Return the cores in a list as the kernel writes it, for example ``0,3-5``.

    Raises:
        ValueError: the text is no such list.
    """
    cores: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        cores += range(int(first), int(last or first) + 1)
    return tuple(cores)


def clusters_of(simulation: Mapping[str, Any]) -> tuple[Cluster, ...]:
    """Return the clusters of ``[[simulation.cpu.clusters]]``, in the file's order."""
    found: list[Cluster] = []
    for table in simulation["cpu"]["clusters"]:
        freqs_khz = tuple(table["freqs_khz"])
        cores = parse_cores(table["cores"])
        defaults = {
            "name": f"cluster{len(found)}",
            "start_min_khz": freqs_khz[0],
            "cores_per_policy": len(cores),
            **table,
            "cores": cores,
            "freqs_khz": freqs_khz,
        }
        found.append(Cluster(**defaults))
    return tuple(found)


def policies_of(simulation: Mapping[str, Any]) -> tuple[Policy, ...]:
    """Return every policy of the board, in the order of their first cores."""
    found = []
    for cluster in clusters_of(simulation):
        size = cluster.cores_per_policy
        for first in range(0, len(cluster.cores), size):
            cores = cluster.cores[first : first + size]
            found.append(Policy(name=f"policy{cores[0]}", cores=cores, cluster=cluster))
    return tuple(sorted(found, key=lambda policy: policy.cores[0]))


def core_numbers(simulation: Mapping[str, Any]) -> tuple[int, ...]:
    """Return the numbers of all cores, ascending."""
    return tuple(sorted(core for cluster in clusters_of(simulation) for core in cluster.cores))


def cpu_max_khz(simulation: Mapping[str, Any]) -> int:
    """Return the highest clock of any core."""
    return max(cluster.freqs_khz[-1] for cluster in clusters_of(simulation))
