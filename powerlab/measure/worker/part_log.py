"""How long the parts of each query took, for engines that say so: those of a step of training."""

from __future__ import annotations

import time
from array import array
from collections.abc import Mapping

import numpy as np

from powerlab.measure.worker.messages import QueryParts


class PartLog:
    """Notes of the parts of queries, in the order in which these were answered."""

    def __init__(self) -> None:
        self._forget()

    def note(self, part_ns: Mapping[str, int]) -> None:
        """Note what the query that was just answered took; nothing where its engine does not say."""
        if part_ns:
            self._when_ns.append(time.monotonic_ns())
            for name, ns in part_ns.items():
                self._ns.setdefault(name, array("q")).append(ns)

    def taken(self, first_ns: int, last_ns: int) -> QueryParts:
        """Return the parts of queries that were answered within a window, as little-endian int64, and forget all."""
        first, last = np.searchsorted(np.array(self._when_ns), (first_ns, last_ns))
        found = {name: np.array(values)[first:last].astype("<i8").tobytes() for name, values in self._ns.items()}
        self._forget()
        return found

    def _forget(self) -> None:
        self._when_ns = array("q")
        self._ns: dict[str, array[int]] = {}
