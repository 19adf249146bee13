"""The roofs of a roofline, measured: multiply-adds a second from registers, and bytes a second from memory.

Williams, Waterman and Patterson, "Roofline: an insightful visual performance model for multicore architectures", 2009.
Both run as plans of one step, so on the same threads, cores and instruction set as a model's steps do.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct

from powerlab.engine.program.layout import Layout
from powerlab.engine.program.program import Program, Step, Tensor
from powerlab.engine.program.storage import Space, Storage
from powerlab.engine.runtime.plan import build_plan, thread_pool
from powerlab.engine.session import SPIN_US
from powerlab.engine.target.tiers import Tier, choose_tier

PEAK_SUMS = 12
"""Sums that the kernel ``peak`` keeps in registers (native/engine/kernels/peak.hpp)."""
_PEAK_ROUNDS = 1_000_000
_SEARCH_NS = 800_000_000
_LEAST_ARRAY_BYTES, _MOST_ARRAY_BYTES = 32 << 20, 256 << 20
_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")


class Ceilings(Struct, frozen=True, kw_only=True):
    """What this processor can do at most with some threads.

    Attributes:
        peak_gflops: 10^9 floating-point operations a second, two for each multiply-add.
        memory_gb_per_s: 10^9 bytes a second through memory, counted as STREAM's Add does (McCalpin, 1995): two arrays
            read, one written.
    """

    peak_gflops: float
    memory_gb_per_s: float


def measure_ceilings(threads: int) -> Ceilings:
    """Return the best of many attempts at each, which take about two seconds together.

    Args:
        threads: threads that compute, the caller being one.

    Raises:
        PowerlabError: ``POWERLAB_TIER`` names no tier of this processor.
    """
    tier = choose_tier()
    return Ceilings(peak_gflops=_peak_gflops(tier, threads), memory_gb_per_s=_memory_gb_per_s(tier, threads))


def _peak_gflops(tier: Tier, threads: int) -> float:
    flops = 2 * PEAK_SUMS * tier.vector_width * _PEAK_ROUNDS * threads
    return flops / _least_ns(_plan("peak", tier, threads, 1, {"size": _PEAK_ROUNDS, "alpha": 1e-30}))


def _memory_gb_per_s(tier: Tier, threads: int) -> float:
    vectors = _array_bytes() // (4 * tier.vector_width) // threads
    plan = _plan("add", tier, threads, vectors, {"low": -np.inf, "high": np.inf})
    return 3 * 4 * vectors * tier.vector_width * threads / _least_ns(plan)


def _array_bytes() -> int:
    """Return the size of an array that no cache holds: four times the last one (STREAM's rule), within bounds."""
    sizes = [_LEAST_ARRAY_BYTES // 4]
    for path in _CACHES.glob("index*/size"):
        text = path.read_text(encoding="ascii").strip()
        sizes.append(int(text[:-1]) * {"K": 1 << 10, "M": 1 << 20}[text[-1]])
    return min(_MOST_ARRAY_BYTES, 4 * max(sizes))


def _plan(family: str, tier: Tier, threads: int, vectors: int, settings: dict[str, Any]) -> Any:
    """Return a plan of one step over so many vectors a thread, all in the arena, which starts as zeros."""
    floats = vectors * tier.vector_width
    layout = Layout(threads, tier.vector_width, 1, vectors, 1, tier.vector_width, floats, floats, floats)
    out, x, y = (Tensor(Storage(number, Space.ARENA, 0, layout.size), layout) for number in range(3))
    step = Step(family, family, out, x, y, settings=settings)
    return build_plan(Program((step,), ()), tier, thread_pool(threads, SPIN_US))


def _least_ns(plan: Any) -> int:
    """Return how long the plan takes at best: what else runs on the machine only ever makes it slower."""
    until_ns, least_ns = time.monotonic_ns() + _SEARCH_NS, int(plan.repeat([], [], 0, 1, 1))
    while time.monotonic_ns() < until_ns:
        least_ns = min(least_ns, int(plan.repeat([], [], 0, 1, 1)))
    return least_ns
