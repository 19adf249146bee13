"""The dispatches of a step on a GPU, which can be timed and repeated one by one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from numpy.typing import NDArray

from powerlab.engine.codegen.work import StepWork
from powerlab.engine.gpu.exchange import Exchange
from powerlab.engine.gpu.model import TIMEOUT_S, sentences
from powerlab.engine.gpu.program import GpuProgram


class GpuRun(Struct, frozen=True, kw_only=True):
    """A step of one slice; fulfils :class:`powerlab.engine.training.plans.Repeatable`.

    Attributes:
        plan: native.
        exchange: of its arrays.
        program: its dispatches.
        work: what each of them has to do.
    """

    plan: Any
    exchange: Exchange
    program: GpuProgram
    work: tuple[StepWork, ...]

    @property
    def labels(self) -> tuple[str, ...]:
        """Return what each dispatch computes."""
        return tuple(one.label for one in self.program.dispatches)

    def kernels(self) -> tuple[str, ...]:
        """Return the kernel of each dispatch."""
        return tuple(name for name, _ in self.plan.steps())

    def run(self, arrays: Mapping[str, NDArray[Any]]) -> list[int]:
        """Make one step, and return how long each dispatch took, in ns: each waits for the one before it."""
        with sentences():
            out = self.exchange.out(self.exchange.room())
            return list(self.plan.run_timed(self.exchange.given(arrays), out, int(TIMEOUT_S * 1e9)))

    def repeat(self, arrays: Mapping[str, NDArray[Any]], first: int, last: int, times: int) -> int:
        """Run some dispatches many times over, and return how long that took, in ns."""
        with sentences():
            return int(self.plan.repeat(self.exchange.given(arrays), first, last, times, int(TIMEOUT_S * 1e9)))
