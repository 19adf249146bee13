"""Loops that are run round after round: the body is planned once for the shapes that it reads."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Hashable, Mapping

import numpy as np
from msgspec import Struct

from powerlab.domain.errors import PowerlabError
from powerlab.engine.ir.constants import Recipe, Value, content, value_of
from powerlab.engine.ir.graph import Array, NeedsRunError, Node, TensorInfo
from powerlab.engine.ir.rounds import Round, one_round
from powerlab.engine.planned import PlannedGraph
from powerlab.engine.staged.parts import Parts
from powerlab.engine.staged.shelf import Kept

MOST_BODIES = 32
"""Bodies that stay planned: the ones used latest."""

MOST_ROUNDS = 2**20
"""More than the steps of any recording; a file must not decide that a run never ends."""

_AT_ONCE = 2**12
"""Rounds that are run before the interpreter may be interrupted, at most."""

_STEPS_AT_ONCE = 2**17
"""Steps of them."""

_ROOM_ELEMENTS = 2**24
"""What may be gathered of them."""

_COMPARED_ELEMENTS = 2**12
"""Constants up to this size are compared by what they hold; larger ones are weights, and the same ones every time."""


class SideBySideError(Exception):
    """The rounds of a Loop cannot be planned as one: a kernel must know values that each has of its own.

    Attributes:
        node: the Loop.
    """

    def __init__(self, node: Node) -> None:
        super().__init__(str(node))
        self.node = node


class _Planned(Struct, frozen=True, eq=False):
    body: Round
    graph: PlannedGraph
    weights: list[Kept]
    constants: list[Value]


class Loops:
    """The Loops of a model.

    Args:
        parts: what they share with the other parts of the model.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._planned: OrderedDict[Hashable, _Planned] = OrderedDict()

    def run(self, node: Node, values: Mapping[str, Array], constants: Mapping[str, Value]) -> dict[str, Array]:
        """Return what a Loop makes, by name.

        Args:
            node: the Loop.
            values: name → array, of what it reads.
            constants: the same, of what every run has.

        Raises:
            SideBySideError: the rounds cannot be planned as one.
            PowerlabError: the body cannot be run, or there is no end of rounds.
        """
        there = {name: values[name] if name in values else constants[name] for name in _read(node)}
        planned = self._plan(node, there, {name: constants[name] for name in there if name in constants})
        body, graph = planned.body, planned.graph
        states = {
            state: value_of(there[outer])
            for (state, after), outer in zip(body.states, node.inputs[2:], strict=True)
            if state != after
        }
        around = {name: values[name] for name in graph.inputs if name in values and name not in states}
        most, done, goes_on = _most_rounds(node, there), 0, True
        rows: list[list[Array]] = [[] for _ in body.gathered]
        while goes_on and done < most:
            ran = graph.rounds(body, {**around, **states}, done, min(_at_once(body, graph), most - done))
            done, goes_on, states = done + ran.rounds, ran.goes_on, ran.states
            for kept, more in zip(rows, ran.gathered, strict=True):
                kept.append(more)
        if done > MOST_ROUNDS:
            raise PowerlabError(f"{node} goes on for more than {MOST_ROUNDS} rounds.")
        made: dict[str, Array] = {}
        for (state, after), outer, name in zip(body.states, node.inputs[2:], node.outputs, strict=False):
            if name:
                made[name] = value_of(there[outer]) if state == after else states[state]
        for kept, result, name in zip(rows, body.gathered, node.outputs[len(body.states) :], strict=True):
            if name:
                shape = (0, *graph.outputs[result])
                made[name] = np.concatenate(kept) if kept else np.empty(shape, graph.dtypes[result])
        return made

    def poison(self) -> None:
        """Overwrite all intermediate memory with not-a-number; results of the next run must be the same."""
        for planned in self._planned.values():
            planned.graph.poison()

    def _plan(self, node: Node, there: Mapping[str, Value], constants: Mapping[str, Value]) -> _Planned:
        key = (
            node.outputs,
            tuple((value.shape, value.dtype.str) for value in there.values()),
            tuple((name, _compared(value)) for name, value in constants.items()),
        )
        if key in self._planned:
            self._planned.move_to_end(key)
            return self._planned[key]
        infos = {name: TensorInfo(name, value.shape, value.dtype) for name, value in there.items()}
        body = one_round(node, infos, constants)
        assert body is not None  # noqa: S101  it was one where the Loop was left
        try:
            graph, weights = self._parts.plan(body.graph)
        except NeedsRunError:
            raise SideBySideError(node) from None
        self._planned[key] = _Planned(body, graph, weights, list(constants.values()))
        while len(self._planned) > MOST_BODIES:
            self._planned.popitem(last=False)
        return self._planned[key]


def _at_once(body: Round, graph: PlannedGraph) -> int:
    elements = sum(math.prod(graph.outputs[name]) for name in body.gathered)
    return max(1, min(_AT_ONCE, _STEPS_AT_ONCE // max(1, len(graph.work)), _ROOM_ELEMENTS // max(1, elements)))


def _read(node: Node) -> list[str]:
    return sorted({*filter(None, node.inputs), *node.captured()})


def _compared(value: Value) -> Hashable:
    if isinstance(value, Recipe) or value.size > _COMPARED_ELEMENTS:
        return id(value)  # of what the plan holds, so no other has it
    return content(value)


def _most_rounds(node: Node, there: Mapping[str, Value]) -> int:
    """Return how many rounds there may be, one more than are allowed where nothing ends them before."""
    limit, begins = (there.get(node.input(index)) for index in (0, 1))
    if begins is not None and not value_of(begins).all():
        return 0
    return MOST_ROUNDS + 1 if limit is None else max(0, min(int(value_of(limit).reshape(-1)[0]), MOST_ROUNDS + 1))
