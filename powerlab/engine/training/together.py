"""Several processes that learn from a batch together, each from its part: data-parallel training.

Every process has the same weights, goes forward and backward over its own part of the batch, and then all add up their
gradients, so that they move their weights alike (J. Dean et al., Large scale distributed deep networks, 2012, and with
all-reduce as in A. Sergeev and M. Del Balso, https://arxiv.org/abs/1802.05799).
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any, Protocol

import numpy as np

from powerlab.domain.errors import PowerlabError
from powerlab.engine.program.program import Floats

_BUCKET_FLOATS = 1 << 20
"""Smaller arrays are sent together, up to 4 MB; larger ones by themselves."""


class Group(Protocol):
    """The processes.

    Attributes:
        size: how many there are.
    """

    size: int

    def add_up(self, arrays: Sequence[Floats]) -> None:
        """Let each array be its sum over all processes, the same bits in each of them."""


class Alone:
    """One process by itself."""

    size = 1

    def add_up(self, arrays: Sequence[Floats]) -> None:
        """Do nothing: the sum is there."""


class MpiGroup:
    """The processes that MPI started, by mpi4py.

    Attributes:
        size: how many there are.
        rank: number of this one, from 0 on.

    Raises:
        PowerlabError: mpi4py or an MPI is missing.
    """

    def __init__(self) -> None:
        try:
            self._mpi: Any = import_module("mpi4py.MPI")
        except (ImportError, RuntimeError) as error:  # the latter where there is no MPI
            raise PowerlabError(
                f"training in several processes needs mpi4py and an MPI ({error}); pip install 'powerlab[cluster]', "
                "and on Debian apt install openmpi-bin."
            ) from error
        self._all = self._mpi.COMM_WORLD
        self.size, self.rank = int(self._all.Get_size()), int(self._all.Get_rank())

    def add_up(self, arrays: Sequence[Floats]) -> None:
        """Add up in buckets."""
        for bucket in _buckets(arrays):
            if len(bucket) == 1:
                self._all.Allreduce(self._mpi.IN_PLACE, bucket[0])
                continue
            joined = np.concatenate(bucket)
            self._all.Allreduce(self._mpi.IN_PLACE, joined)
            begin = 0
            for array in bucket:
                array[:] = joined[begin : begin + array.size]
                begin += array.size


def _buckets(arrays: Iterable[Floats]) -> list[list[Floats]]:
    """Return the arrays, in order, in lists that have up to the size of a bucket or one array."""
    buckets: list[list[Floats]] = []
    room = 0
    for array in arrays:
        if array.size > room:
            buckets.append([])
            room = _BUCKET_FLOATS
        buckets[-1].append(array)
        room -= array.size
    return buckets


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
