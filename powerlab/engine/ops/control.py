"""If and Loop, resolved while shapes are inferred: the branch taken, or round after round, stands in their place.

Exporters write them where a program looked at shapes, so that once all shapes are known nothing is left to decide. For
a branch or a number of rounds that only a run can tell the plan ends before it (:mod:`powerlab.engine.staged`).

Source: https://onnx.ai/onnx/operators/onnx__If.html and onnx__Loop.html.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import cast

import numpy as np

from powerlab.engine.ir.constants import Value
from powerlab.engine.ir.graph import Node, Subgraph
from powerlab.engine.ops.view import NodeView

MAX_INLINED_NODES = 2**14
"""Nodes and rounds of all bodies of a model together: more than exporters write, less than a hostile file asks for."""

Fresh = Callable[[str], str]
"""Gives a name that no tensor has yet."""


@dataclass(frozen=True, slots=True)
class Inlined:
    """What stands in the place of a node: ``nodes`` in order, which may be followed by the same node's next round."""

    nodes: tuple[Node, ...]
    constants: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Rounds:
    """Where a Loop stands.

    Attributes:
        done: how many rounds stand before it.
        gathered: what each round made of each result that is gathered.
        constants: the body's own name of a constant → its name in the graph, where it is once for all rounds.
    """

    done: int = 0
    gathered: tuple[tuple[str, ...], ...] = ()
    constants: Mapping[str, str] = field(default_factory=dict)


def _body(view: NodeView, name: str) -> Subgraph:
    body = view.node.attributes.get(name)
    if not isinstance(body, Subgraph):
        view.fail(f"lacks its graph {name}")
    return body


def _decided(view: NodeView, index: int) -> bool:
    """Return the truth value in input ``index``, which must not depend on a run."""
    if not view.is_known(index):
        view.needs_run(index, "decides by a value that only a run gives")
    value = view.value(index)
    if value.size != 1 or value.dtype.kind != "b":
        view.fail(f"needs one truth value as input {index + 1}, but it has {value.dtype} of shape {value.shape}")
    return bool(value.reshape(-1)[0])


def _if(view: NodeView, fresh: Fresh) -> Inlined:
    body = _body(view, "then_branch" if _decided(view, 0) else "else_branch")
    if len(body.outputs) != len(view.node.outputs):
        view.fail(f"has {len(view.node.outputs)} outputs, but its branch makes {len(body.outputs)}")
    where = _where(view.node)
    names = {name: fresh(f"{where}/{name}") for name in sorted({*body.constants, *body.made()})}
    results = _handed_on(view.node, [names.get(name, name) for name in body.outputs], view.node.outputs)
    constants = {names[name]: value for name, value in body.constants.items()}
    return Inlined((*body.renamed(names, where), *results), constants)


def _where(node: Node) -> str:
    """Return what names of the body begin with; a file may give its nodes names of any length."""
    return node.name[:80]


def _handed_on(node: Node, made: list[str], outputs: tuple[str, ...]) -> tuple[Node, ...]:
    """Return the nodes that give tensors of the body the names they have outside."""
    pairs = [(name, output) for name, output in zip(made, outputs, strict=True) if output]
    return tuple(Node("Identity", f"{_where(node)}/{output}", (name,), (output,)) for name, output in pairs)


def _loop(view: NodeView, fresh: Fresh) -> Inlined:
    """Return one round and the Loop that does the others, or what is handed on when there is none left."""
    node, body = view.node, _body(view, "body")
    carried = node.inputs[2:]
    rounds = cast(_Rounds, node.attributes.get("rounds", _Rounds()))  # a file cannot bring it: attributes are checked
    gathers = len(body.outputs) - 1 - len(carried)
    if len(body.inputs) != 2 + len(carried) or gathers < 0 or len(node.outputs) != len(carried) + gathers:
        view.fail(f"carries {len(carried)} tensors and makes {len(node.outputs)}, which does not fit its body")
    if not view.has(0) and not view.has(1):
        view.fail("has neither a number of rounds nor a condition")
    if not _goes_on(view, rounds.done):
        return Inlined(_results(view, fresh, carried, rounds.gathered or ((),) * gathers))
    if rounds.done >= MAX_INLINED_NODES:
        view.fail(f"goes on for more than {MAX_INLINED_NODES} rounds")
    where = f"{_where(node)}/{rounds.done}"
    kept = rounds.constants or {name: fresh(f"{_where(node)}/{name}") for name in body.constants}
    constants: dict[str, Value] = {} if rounds.done else {kept[name]: value for name, value in body.constants.items()}
    counter, condition = fresh(f"{where}/round"), fresh(f"{where}/condition")
    constants[counter], constants[condition] = np.asarray(rounds.done, np.int64), np.asarray(True)
    names = {**kept, **dict(zip(body.inputs, (counter, condition, *carried), strict=True))}
    names.update({name: fresh(f"{where}/{name}") for name in sorted(body.made())})
    goes_on, *made = (names.get(name, name) for name in body.outputs)
    latest = made[len(carried) :]
    gathered = tuple((*before, name) for before, name in zip(rounds.gathered or ((),) * gathers, latest, strict=True))
    again = replace(
        node,
        inputs=(node.inputs[0], goes_on if view.has(1) else "", *made[: len(carried)]),
        attributes={"body": body, "rounds": _Rounds(rounds.done + 1, gathered, kept)},
    )
    return Inlined((*body.renamed(names, where), again), constants)


def _goes_on(view: NodeView, done: int) -> bool:
    if view.has(1) and not _decided(view, 1):
        return False
    if not view.has(0):
        return True
    if not view.is_known(0):
        view.needs_run(0, "learns its number of rounds only in a run")
    rounds = view.int_values(0)
    if len(rounds) != 1:
        view.fail(f"needs one number of rounds, but it has {len(rounds)}")
    return done < rounds[0]


def _results(
    view: NodeView, fresh: Fresh, carried: tuple[str, ...], gathered: tuple[tuple[str, ...], ...]
) -> tuple[Node, ...]:
    node = view.node
    nodes = list(_handed_on(node, list(carried), node.outputs[: len(carried)]))
    for output, names in zip(node.outputs[len(carried) :], gathered, strict=True):
        if not output:
            continue
        if not names:
            view.fail("gathers what rounds make, but does none")
        rows = tuple(fresh(f"{output}/{index}") for index in range(len(names)))
        nodes.extend(
            Node("Unsqueeze", f"{_where(node)}/{row}", (name,), (row,), {"axes": (0,)})
            for name, row in zip(names, rows, strict=True)
        )
        nodes.append(Node("Concat", f"{_where(node)}/{output}", rows, (output,), {"axis": 0}))
    return tuple(nodes)


CONTROL: Mapping[str, Callable[[NodeView, Fresh], Inlined]] = {"If": _if, "Loop": _loop}
"""Operator → what stands in its place."""
