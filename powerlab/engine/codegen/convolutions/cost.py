"""What multiplications and memory cost, in cycles of one core."""

from __future__ import annotations

from collections.abc import Callable

from powerlab.engine.target.machine import Machine

_LOADS_PER_CYCLE = 2
_LATENCY_CYCLES = 4
"""Of a multiply-add: a small register tile waits for its own sums."""

_HIDDEN = 0.5
"""Part of the shorter of arithmetic and memory traffic that the longer one hides: prefetches come early, not always."""


StepCycles = Callable[[Machine, float, float], float]
"""What a register tile takes for an input channel, by its channel blocks and pixels: see :func:`step_cycles`."""


def step_cycles(machine: Machine, blocks: float, pixels: float) -> float:
    """Return the cycles that a register tile takes for one input channel.

    Args:
        machine: with its vectors.
        blocks: channel blocks of the tile.
        pixels: pixels of the tile.
    """
    multiplications = blocks * pixels / machine.multiply_adds_per_cycle
    return max(multiplications, (blocks + pixels) / _LOADS_PER_CYCLE, _LATENCY_CYCLES)


def overlapped(compute_cycles: float, memory_cycles: float) -> float:
    """Return the cycles of arithmetic and of weights that come from memory meanwhile."""
    if compute_cycles < memory_cycles:
        return memory_cycles + _HIDDEN * compute_cycles
    return compute_cycles + _HIDDEN * memory_cycles


def fetch_cycles(machine: Machine, x_bytes: int, channel_split: int) -> float:
    """Return the cycles in which a thread fetches what other threads wrote of a convolution's input.

    The convolution before is taken to have shared out pixels. Who does so too finds its own in its own cache; who
    divides the channels of the output reads everybody's pixels, which nothing prefetches.

    Args:
        machine: with its threads.
        x_bytes: what all threads read of the input.
        channel_split: into how many parts the output channels go.
    """
    row_parts = max(1, machine.threads // channel_split)
    return x_bytes * (1 / row_parts - 1 / machine.threads) / machine.core_bytes_per_cycle
