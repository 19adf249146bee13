"""Where a run is between two stages: what is left to compute, and which tensors are there."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np
from msgspec import Struct

from powerlab.engine.ir.constants import Value
from powerlab.engine.ir.graph import Array, Node, TensorInfo
from powerlab.engine.ir.shapes import IN_ROUNDS
from powerlab.engine.ops import NodeView, decides_by_values, operator

ON_HOST = "numpy"
"""Stands for the kernel of a node that numpy computes."""

ROUNDS = "rounds"
"""Stands for the kernels of a Loop that is run round after round."""

RunLoop = Callable[[Node, Mapping[str, Array], Mapping[str, Value]], dict[str, Array]]
"""Returns what a Loop makes of values and constants, by name."""


class Place(Struct, frozen=True, eq=False):
    """A place in a run.

    Attributes:
        number: no other place has it.
        by_values: nodes whose inputs are there and decide by their values what is made, which numpy computes first, and
            Loops that are run round after round.
        left: the other nodes that are left.
        constants: what all of them read, and what is wanted.
        reads: the tensors there that nodes left read, in an order that stays.
        live: the tensors there that are read or wanted after the nodes ``by_values``.
    """

    number: int
    by_values: tuple[Node, ...]
    left: tuple[Node, ...]
    constants: Mapping[str, Value]
    reads: tuple[str, ...]
    live: frozenset[str]

    @classmethod
    def at(
        cls,
        number: int,
        nodes: Sequence[Node],
        constants: Mapping[str, Value],
        there: Collection[str],
        wanted: Collection[str],
    ) -> Place:
        """Return the place where ``nodes`` are left, the tensors ``there`` are there and some are ``wanted``."""
        named = {*wanted, *(name for node in nodes for name in (*node.inputs, *node.captured()))}
        constants = {name: constants[name] for name in named if name in constants}
        available = {"", *there, *constants}
        left, by_values = list(nodes), []
        while ready := [node for node in left if _is_apart(node) and available >= {*node.inputs, *node.captured()}]:
            by_values.extend(ready)
            left = [node for node in left if node not in ready]
            available.update(output for node in ready for output in node.outputs)
        there = {*there, *(output for node in by_values for output in node.outputs if output)}
        read = {name for node in left for name in (*node.inputs, *node.captured())}
        reads = tuple(sorted(there & (read - constants.keys())))
        return cls(number, tuple(by_values), tuple(left), constants, reads, frozenset(there & {*read, *wanted}))

    def compute(self, values: dict[str, Array], run_loop: RunLoop) -> list[tuple[str, str, int]]:
        """Add to ``values`` what the nodes ``by_values`` make; return kernel, node and nanoseconds of each.

        Args:
            values: what is there.
            run_loop: runs a Loop.

        Raises:
            PowerlabError: the values do not fit the operator; names the node.
        """
        steps = []
        for node in self.by_values:
            begin_ns = time.monotonic_ns()
            compute = run_loop if node.op_type == "Loop" else _computed
            values.update(compute(node, values, self.constants))
            kernel = ROUNDS if node.op_type == "Loop" else ON_HOST
            steps.append((kernel, node.name, time.monotonic_ns() - begin_ns))
        return steps


def _is_apart(node: Node) -> bool:
    """Say whether a node is computed between two stages."""
    return decides_by_values(node) or IN_ROUNDS in node.attributes


def _computed(node: Node, values: Mapping[str, Array], constants: Mapping[str, Value]) -> dict[str, Array]:
    found = [values.get(name, constants.get(name)) if name else None for name in node.inputs]
    infos = (
        None if value is None else TensorInfo(name, value.shape, value.dtype)
        for name, value in zip(node.inputs, found, strict=True)
    )
    view = NodeView(node, tuple(infos), tuple(found))
    evaluate = operator(node).evaluate
    assert evaluate is not None  # noqa: S101  values decide, so it has one
    with np.errstate(all="ignore"):
        made = evaluate(view)
    arrays = made if isinstance(made, tuple) else (made,)
    return {name: array for name, array in zip(node.outputs, arrays, strict=False) if name}
