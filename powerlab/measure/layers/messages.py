"""Messages between a layer profile and its worker."""

from __future__ import annotations

import msgspec

from powerlab.domain.workload import Processor

WHOLE = -1
"""In place of a step's number: all of them, as an inference runs them."""


class LoadLayers(msgspec.Struct, tag=True, frozen=True, kw_only=True):
    """To the worker: load this model into the built-in engine and say which steps its plan has."""

    model: str
    batch_size: int
    threads: int
    sysroot: str
    seed: int
    processor: Processor = Processor.CPU
    optimizer: str = ""


class RepeatStep(msgspec.Struct, tag=True, frozen=True, kw_only=True):
    """To the worker: repeat a step for ``margin_s``, then for the timed window, then for ``margin_s`` more."""

    step: int
    duration_s: float
    margin_s: float


class FindCeilings(msgspec.Struct, tag=True, frozen=True, kw_only=True):
    """To the worker: measure what its cores can do at most."""


class Steps(msgspec.Struct, tag=True, frozen=True, kw_only=True):
    """From the worker: what stands in the plan. All lists but ``tier`` have an entry a step, in the order they run."""

    tier: str
    kernels: tuple[str, ...]
    labels: tuple[str, ...]
    operators: tuple[str, ...]
    nodes: tuple[tuple[str, ...], ...]
    shapes: tuple[tuple[int, ...], ...]
    flops: tuple[int, ...]
    bytes_moved: tuple[int, ...]


class Repeated(msgspec.Struct, tag=True, frozen=True, kw_only=True):
    """From the worker: the timed window in chunks of many repetitions, int64 little-endian.

    Attributes:
        start_ns: CLOCK_MONOTONIC at every chunk's start.
        end_ns: and at its end.
        count: repetitions in each.
        step_ns: of the whole, what each chunk's repetitions took on the mean, in ns, a row a chunk and a column a step;
            on a simulated board the same in each. Empty for a single step.
    """

    start_ns: bytes
    end_ns: bytes
    count: bytes
    step_ns: bytes


class Roofs(msgspec.Struct, tag=True, frozen=True, kw_only=True):
    """From the worker: its ceilings, as :class:`powerlab.engine.target.ceilings.Ceilings` has them."""

    peak_gflops: float
    memory_gb_per_s: float


LayerRequest = LoadLayers | RepeatStep | FindCeilings
LayerReply = Steps | Repeated | Roofs
