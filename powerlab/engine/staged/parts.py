"""A part of a model that is planned in stages: lowered, and planned with what all parts share."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from powerlab.engine.ir.graph import Graph
from powerlab.engine.passes import optimise
from powerlab.engine.planned import PlannedGraph, Planning
from powerlab.engine.precomputed import precompute
from powerlab.engine.prepared.prepared import prepare
from powerlab.engine.staged.shelf import Holder, Kept, Shelf
from powerlab.engine.target.machine import Machine


class Parts(Struct, frozen=True):
    """What all parts of a model share.

    Attributes:
        planning: how to plan a part.
        pool: the threads that run them all, one after the other.
        machine: what they are planned for.
        shelf: their weights.
    """

    planning: Planning
    pool: Any
    machine: Machine
    shelf: Shelf

    def plan(self, graph: Graph, lender: PlannedGraph | None = None) -> tuple[PlannedGraph, list[Kept]]:
        """Return a part and what holds its weights; ``lender`` is that of :class:`PlannedGraph`.

        Raises:
            NeedsRunError: a kernel must know a value that only a run gives.
            PowerlabError: the part needs what the engine does not have, or does not fit into memory.
        """
        weights: list[Kept] = []
        holder, planning = Holder(self.shelf, weights), self.planning
        prepared = prepare(
            optimise(precompute(graph)),
            planning.tier,
            planning.threads,
            planning.chooser,
            made=holder,
            machine=self.machine,
        )
        return PlannedGraph(prepared, planning, self.pool, holder.keep, lender=lender), weights
