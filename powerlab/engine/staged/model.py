"""A model that is planned in stages, each when what decides its shapes is known.

Shapes may be open in the file, be decided by the values of small tensors (a size to resize to, axes, a number of
rounds), or by those of large ones (the boxes that suppression leaves). A stage is as much of the network as can be told
before it runs. The values that decide how it goes on become constants of the next stage, and operators whose outputs
have as many rows as their inputs' values say (NonZero, NonMaxSuppression) are computed by numpy between two stages.
Stages are planned once for each set of shapes and deciding values, the latest are kept, and all share the threads and,
where they are the same, the weights.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace
from numpy.typing import NDArray

from powerlab.domain.errors import PowerlabError
from powerlab.engine.ir.constants import content, value_of
from powerlab.engine.ir.element_types import engine_dtype
from powerlab.engine.ir.graph import Array, NeedsRunError, Node, TensorInfo, quoted
from powerlab.engine.ir.open_model import OpenModel
from powerlab.engine.ir.shapes import infer_beginning, sorted_nodes
from powerlab.engine.planned import PlannedGraph, Planning, checked_inputs
from powerlab.engine.runtime.outside_types import to_engine, to_model
from powerlab.engine.staged.loops import Loops, SideBySideError
from powerlab.engine.staged.parts import Parts
from powerlab.engine.staged.place import Place
from powerlab.engine.staged.shelf import Kept, Shelf
from powerlab.engine.target.machine import this_machine

MOST_STAGES = 32
"""Stages that stay planned, of those with many weights, and of the others: the ones used latest."""

_MANY_BYTES = 2**20

Key = tuple[Any, ...]


class _Stage(Struct, frozen=True, eq=False):
    """As much of the network as could be told at a place.

    Attributes:
        planned: what is to run; None where everything was told without a run.
        after: the place it leads to; what was told without a run is a constant there.
        weights: holds what ``planned`` reads.
    """

    planned: PlannedGraph | None
    after: Place
    weights: list[Kept] = field(default_factory=list)

    @property
    def has_many_weights(self) -> bool:
        """Say whether it would take long to make its weights anew."""
        return sum(kept.array.nbytes for kept in self.weights) >= _MANY_BYTES


class StagedModel:
    """A model planned in stages while it runs.

    Args:
        model: the model.
        planning: how to plan a stage.
        pool: the threads that run them all.

    Attributes:
        inputs: name -> shape of every input; a size of -1 is open, and () may stand for any shape.
        outputs: name -> shape of every output in the latest run; before it, as the file declares it.
        dtypes: name -> numpy type of every input; after a run, of every output too.

    Raises:
        PowerlabError: a node or an output needs a tensor that nothing makes.
    """

    def __init__(self, model: OpenModel, planning: Planning, pool: Any) -> None:
        self._model = model
        self._parts = Parts(planning, pool, this_machine(planning.tier, planning.threads), Shelf())
        self._loops = Loops(self._parts)
        self.inputs = {info.name: info.shape for info in model.inputs}
        self.outputs = dict(model.outputs)
        self.dtypes = {info.name: model.outside.get(info.name, info.dtype) for info in model.inputs}
        self._numbers = 0
        self._stages: OrderedDict[Key, _Stage] = OrderedDict()
        self._latest: list[tuple[str, str, int]] = []
        self._deciding: set[str] = set()
        self._apart: set[str] = set()
        self._side_by_side: set[str] = set()
        self._turn = threading.Lock()
        self._first = self._place(self._needed_nodes(), model.constants, set(self.inputs))

    def run(self, inputs: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Run once: see :meth:`powerlab.engine.Session.run`."""
        return self._run(inputs, timed=False)

    def timed(self, inputs: Mapping[str, NDArray[Any]]) -> tuple[dict[str, NDArray[Any]], list[tuple[str, str, int]]]:
        """Run once; return the outputs, and kernel, node and duration in nanoseconds of every step, in order."""
        outputs = self._run(inputs, timed=True)
        return outputs, list(self._latest)

    def steps(self) -> list[tuple[str, str]]:
        """Return kernel and node of every step of the latest run that was timed, in the order they ran."""
        return [(kernel, label) for kernel, label, _ in self._latest]

    def poison(self) -> None:
        """Overwrite all intermediate memory with not-a-number; results of the next run must be the same."""
        for stage in self._stages.values():
            if stage.planned is not None:
                stage.planned.poison()
        self._loops.poison()

    def _run(self, inputs: Mapping[str, Any], *, timed: bool) -> dict[str, NDArray[Any]]:
        shapes = {name: None if name in self._model.open_ranks else shape for name, shape in self.inputs.items()}
        given = checked_inputs(shapes, self.dtypes, inputs)
        values: dict[str, Array] = {
            info.name: to_engine(np.asarray(given[info.name]), info.dtype) for info in self._model.inputs
        }
        with self._turn:
            while True:
                try:
                    return self._all_stages(dict(values), timed=timed)
                except SideBySideError as error:
                    self._side_by_side.update(error.node.outputs)
                    self._stages.clear()

    def _all_stages(self, values: dict[str, Array], *, timed: bool) -> dict[str, NDArray[Any]]:
        """Run from the first place on, with the values of the inputs."""
        steps: list[tuple[str, str, int]] = []
        place = self._first
        while place.by_values or place.left:
            steps += place.compute(values, self._loops.run)
            values = {name: values[name] for name in place.live}
            if not place.left:
                break
            stage = self._stage(place, values)
            if stage.planned is not None:
                read = {name: values[name] for name in stage.planned.inputs}
                if timed:
                    made, taken = stage.planned.timed(read)
                    steps += taken
                else:
                    made = stage.planned.run(read)
                values |= made
            place = stage.after
        outputs = {name: self._output(name, values, place) for name in self._model.outputs}
        self._latest = steps
        self.outputs = {name: value.shape for name, value in outputs.items()}
        self.dtypes |= {name: value.dtype for name, value in outputs.items()}
        return outputs

    def _output(self, name: str, values: Mapping[str, Array], place: Place) -> NDArray[Any]:
        if name not in values and name not in place.constants:
            raise PowerlabError(f"the graph promises the output {quoted(name)}, which the engine does not compute.")
        value = values[name] if name in values else value_of(place.constants[name])
        outside = self._model.outside.get(name)
        return to_model(value, outside) if outside is not None and value.dtype == engine_dtype(outside) else value

    def _stage(self, place: Place, values: Mapping[str, Array]) -> _Stage:
        """Return the stage that begins at a place, planned now where that was not done before."""
        key = self._key(place, values)
        if key in self._stages:
            self._stages.move_to_end(key)
            return self._stages[key]
        try:
            stage = self._planned(place, values)
        except MemoryError:
            self._stages.clear()
            raise
        self._stages[self._key(place, values)] = stage  # which values decide may have been found out just now
        alike = [key for key, other in self._stages.items() if other.has_many_weights == stage.has_many_weights]
        for oldest in alike[:-MOST_STAGES]:
            del self._stages[oldest]
        return stage

    def _key(self, place: Place, values: Mapping[str, Array]) -> Key:
        shapes = tuple(values[name].shape for name in place.reads)
        return place.number, shapes, *(content(values[name]) for name in place.reads if name in self._deciding)

    def _planned(self, place: Place, values: Mapping[str, Array]) -> _Stage:
        while True:
            fixed = {name: values[name] for name in place.reads if name in self._deciding or not values[name].size}
            infos = [
                TensorInfo(name, values[name].shape, values[name].dtype) for name in place.reads if name not in fixed
            ]
            begun = infer_beginning(
                self._model.name,
                place.left,
                infos,
                wanted=self._model.outputs,
                constants={**place.constants, **{name: value.copy() for name, value in fixed.items()}},
                apart=self._apart,
                side_by_side=self._side_by_side,
            )
            if begun.deciding or not begun.apart <= self._apart:
                self._deciding |= begun.deciding
                self._apart |= begun.apart
                continue
            if begun.left == place.left and begun.reason is not None:
                raise begun.reason
            try:
                planned: PlannedGraph | None = None
                weights: list[Kept] = []
                if begun.graph.outputs:
                    planned, weights = self._parts.plan(begun.graph, self._lender())
            except NeedsRunError as error:
                self._decide_later(error, {info.name for info in infos}, begun.graph.producers())
                continue
            there = {*place.live, *(info.name for info in begun.graph.outputs)}
            constants = {name: value for name, value in begun.constants.items() if name not in there}
            return _Stage(planned, self._place(begun.left, {**constants, **begun.known}, there), weights)

    def _lender(self) -> PlannedGraph | None:
        """Return the stage with the largest memory for activations, which all can share: one runs at a time."""
        planned = [stage.planned for stage in self._stages.values() if stage.planned is not None]
        return max(planned, key=PlannedGraph.room_floats, default=None)

    def _decide_later(self, error: NeedsRunError, inputs: set[str], producers: Mapping[str, Node]) -> None:
        """Note what a kernel must know before its stage is planned, or raise the error where that cannot be had."""
        tensor = error.tensor
        if tensor in inputs - self._deciding:
            self._deciding.add(tensor)
        elif tensor is not None and tensor in producers and tensor not in self._apart:
            self._apart.add(tensor)
        else:
            raise error

    def _place(self, nodes: tuple[Node, ...], constants: Mapping[str, Any], there: set[str]) -> Place:
        self._numbers += 1
        return Place.at(self._numbers, nodes, constants, there, self._model.outputs)

    def _needed_nodes(self) -> tuple[Node, ...]:
        """Return the nodes that the outputs depend on, in order; Loops without outputs that nothing reads."""
        model = self._model
        there = {*self.inputs, *model.constants}
        nodes = sorted_nodes(model.nodes, there)
        needed = set(model.outputs)
        if missing := needed - there - {name for node in nodes for name in node.outputs}:
            raise PowerlabError(f"the graph promises the output {quoted(min(missing))}, which no node makes.")
        kept = []
        for node in reversed(nodes):
            if not needed.isdisjoint(node.outputs):
                read = tuple(name if name in needed else "" for name in node.outputs)
                kept.append(replace(node, outputs=read) if node.op_type == "Loop" else node)
                needed.update((*node.inputs, *node.captured()))
        return tuple(reversed(kept))
