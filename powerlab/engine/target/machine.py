"""What choices are made for: kernels, threads, caches, and how a core's arithmetic compares with its memory."""

from __future__ import annotations

from msgspec import Struct

from powerlab.engine.target.caches import ASSUMED, Caches, find_caches
from powerlab.engine.target.tiers import Tier

_MULTIPLY_ADDS_PER_CYCLE = {"neon": 1.0}
"""Vectors a core multiplies and adds a cycle, where it is not two; in-order and small Arm cores do one."""


class Machine(Struct, frozen=True, kw_only=True):
    """What a plan is made for.

    Attributes:
        tier: the kernels.
        threads: threads the plan runs on.
        caches: of a core.
        memory_bytes_per_cycle: what a core reads from memory while it multiplies.
        core_bytes_per_cycle: what a core reads of what another core has just written.
    """

    tier: Tier
    threads: int
    caches: Caches = ASSUMED
    memory_bytes_per_cycle: float = 6.0
    core_bytes_per_cycle: float = 2.0

    @property
    def multiply_adds_per_cycle(self) -> float:
        """Return how many vectors a core multiplies and adds a cycle."""
        return _MULTIPLY_ADDS_PER_CYCLE.get(self.tier.name, 2.0)


def this_machine(tier: Tier, threads: int) -> Machine:
    """Return this machine with some of its kernels and threads.

    Raises:
        PowerlabError: a file with the sizes of the caches makes no sense.
    """
    return Machine(tier=tier, threads=threads, caches=find_caches())
