"""Makes an inference on this machine take as long as it would on the simulated board."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from powerlab.domain.errors import PowerlabError
from powerlab.sysroot import Sysroot


@dataclass(frozen=True, slots=True)
class Pacer:
    """The pacer of a real machine: it changes nothing.

    Attributes:
        host_threads: threads the engine really uses.
    """

    host_threads: int

    def inference(self) -> AbstractContextManager[None]:
        """Return the context to run one inference in."""
        return nullcontext()

    def close(self) -> None:
        """Take the worker's load off the board."""


def pacer(sysroot: Sysroot, threads: int) -> Pacer:
    """Return what a worker wraps its inferences in, for ``threads`` threads on the (simulated) board."""
    if sysroot.simulated:
        raise PowerlabError("simulated boards cannot run inferences yet.")
    return Pacer(threads)
