"""Several processes that learn from a batch together, each from its part: data-parallel training.

Every process has the same weights, goes forward and backward over its own part of the batch, and then all add up their
gradients, so that they move their weights alike (J. Dean et al., Large scale distributed deep networks, 2012, and with
all-reduce as in A. Sergeev and M. Del Balso, https://arxiv.org/abs/1802.05799). They begin to do so with the last
layers' while gradients of earlier layers are computed.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, Protocol

import numpy as np
from msgspec import Struct

from powerlab.domain.errors import PowerlabError
from powerlab.engine.program.program import Floats

ELSEWHERE = "another process"
"""Stands in every sentence of a process that ends a step because of what another one met."""


class Group(Protocol):
    """The processes.

    Attributes:
        size: how many there are.
    """

    size: int

    def add_up(self, arrays: Sequence[Floats]) -> None:
        """Let each array be its sum over all processes, the same bits in each of them."""

    def begin(self, arrays: Sequence[Floats]) -> None:
        """Begin to do so, and go on with what was begun before; nobody touches the arrays before :meth:`finish`."""

    def finish(self) -> None:
        """Wait until all that was begun is done."""


class Alone:
    """One process by itself."""

    size = 1

    def add_up(self, arrays: Sequence[Floats]) -> None:
        """Do nothing: the sum is there."""

    def begin(self, arrays: Sequence[Floats]) -> None:
        """Do nothing."""

    def finish(self) -> None:
        """Do nothing."""


class MpiGroup:
    """The processes that MPI started, by mpi4py.

    Args:
        overlapped: whether gradients are added up while others are computed; else all of them afterwards.

    Attributes:
        size: how many there are.
        rank: number of this one, from 0 on.

    Raises:
        PowerlabError: mpi4py or an MPI is missing.
    """

    def __init__(self, *, overlapped: bool = True) -> None:
        try:
            self._mpi: Any = import_module("mpi4py.MPI")
        except (ImportError, RuntimeError) as error:  # the latter where there is no MPI
            raise PowerlabError(
                f"training in several processes needs mpi4py and an MPI ({error}); pip install 'powerlab[cluster]', "
                "and on Debian apt install openmpi-bin."
            ) from error
        self._all = self._mpi.COMM_WORLD
        self.size, self.rank = int(self._all.Get_size()), int(self._all.Get_rank())

        self._overlapped = overlapped
        self._waiting: list[Sequence[Floats]] = []
        self._begun: list[_Begun] = []

    def add_up(self, arrays: Sequence[Floats]) -> None:
        """Add up."""
        for array in arrays:
            self._all.Allreduce(self._mpi.IN_PLACE, array)

    def begin(self, arrays: Sequence[Floats]) -> None:
        """Begin to add up arrays, joined."""
        if arrays:
            self._waiting.append(arrays)
        if self._overlapped:
            self._start()

    def _start(self) -> None:
        """Start what waits, and let MPI, which has no thread of its own, go on with what was started before."""
        for arrays in self._waiting:
            sums = arrays[0] if len(arrays) == 1 else np.concatenate(arrays)
            self._begun.append(_Begun(self._all.Iallreduce(self._mpi.IN_PLACE, sums), sums, arrays))
        self._waiting.clear()
        self._mpi.Request.Testall([one.request for one in self._begun])

    def finish(self) -> None:
        """Wait, and put sums of joined arrays where they belong."""
        self._start()
        self._mpi.Request.Waitall([one.request for one in self._begun])
        for one in self._begun:
            if len(one.arrays) > 1:
                ends = np.cumsum([array.size for array in one.arrays])[:-1]
                for array, sums in zip(one.arrays, np.split(one.sums, ends), strict=True):
                    array[:] = sums
        self._begun.clear()


class _Begun(Struct, frozen=True):
    """Arrays that are being added up.

    Attributes:
        request: mpi4py's.
        sums: what MPI writes.
        arrays: what goes there from it.
    """

    request: Any
    sums: Floats
    arrays: Sequence[Floats]


def check_alike(group: Group, what: object, weights: Mapping[str, Floats]) -> None:
    """Compare what processes begin with.

    Args:
        group: the processes.
        what: shapes and settings that must be the same in all of them.
        weights: that must be so, too.

    Raises:
        PowerlabError: a process begins with something else.
    """
    if group.size == 1:
        return
    digest = zlib.crc32(repr(what).encode())
    for name, values in sorted(weights.items()):
        digest = zlib.crc32(np.ascontiguousarray(values).data, zlib.crc32(name.encode(), digest))
    own = np.array([digest & 0xFFFF, digest >> 16], np.float32)
    total = own.copy()
    group.add_up([total])
    if not np.array_equal(total, own * group.size):
        raise PowerlabError(
            "the processes do not train the same: model, weights, sizes of batch and slices, loss and optimizer must "
            "be the same in all of them."
        )
