"""If, Loop and Scan, resolved while shapes are inferred: the branch taken, or round after round, stands in their place.

Exporters write them where a program looked at shapes, so that once all shapes are known nothing is left to decide. For
a branch or a number of rounds that only a run can tell the plan ends before it (:mod:`powerlab.engine.staged`).

Source: https://onnx.ai/onnx/operators/onnx__If.html, onnx__Loop.html and onnx__Scan.html.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import cast

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from powerlab.engine.ir.constants import Value
from powerlab.engine.ir.graph import Node, Subgraph
from powerlab.engine.ops.view import NodeView

MAX_INLINED_NODES = 2**14
"""Nodes and rounds of all bodies of a model together: more than exporters write, less than a hostile file asks for."""

Fresh = Callable[[str], str]
"""Gives a name that no tensor has yet."""


class Inlined(Struct, frozen=True):
    """What stands in the place of a node: ``nodes`` in order, which may be followed by the same node's next round."""

    nodes: tuple[Node, ...]
    constants: Mapping[str, Value] = field(default_factory=dict)


class _Rounds(Struct, frozen=True):
    """Where a Loop stands.

    Attributes:
        done: how many rounds stand before it.
        gathered: what each round made of each result that is gathered.
    """

    done: int = 0
    gathered: tuple[tuple[str, ...], ...] = ()


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
    shared: tuple[Node, ...] = ()
    constants: dict[str, Value] = {}
    if rounds.done == 0:
        shared, constants, body = _once_for_all_rounds(body, _where(node), fresh)
    counter, condition = fresh(f"{where}/round"), fresh(f"{where}/condition")
    constants[counter], constants[condition] = np.asarray(rounds.done, np.int64), np.asarray(True)
    names = dict(zip(body.inputs, (counter, condition, *carried), strict=True))
    names.update({name: fresh(f"{where}/{name}") for name in sorted(body.made())})
    goes_on, *made = (names.get(name, name) for name in body.outputs)
    latest = made[len(carried) :]
    gathered = tuple((*before, name) for before, name in zip(rounds.gathered or ((),) * gathers, latest, strict=True))
    again = replace(
        node,
        inputs=(node.inputs[0], goes_on if view.has(1) else "", *made[: len(carried)]),
        attributes={"body": body, "rounds": _Rounds(rounds.done + 1, gathered)},
    )
    return Inlined((*shared, *body.renamed(names, where), again), constants)


def _once_for_all_rounds(
    body: Subgraph, where: str, fresh: Fresh
) -> tuple[tuple[Node, ...], dict[str, Value], Subgraph]:
    """Return the nodes and constants that all rounds of a body share, and the body without them."""
    shared = body.same_each_time()
    own = {*body.inputs, *body.made(), *body.constants}
    names = {}
    for name in (*body.constants, *(output for node in shared for output in node.outputs if output)):
        names[name] = _unlike(own, fresh(f"{where}/{name}"), fresh)
    constants = {names[name]: value for name, value in body.constants.items()}
    return (
        tuple(node.renamed(names, f"{where}/{node.name}"[:160]) for node in shared),
        constants,
        body.without(shared, names),
    )


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
        nodes.extend(_stacked(node, fresh, output, names))
    return tuple(nodes)


def _stacked(node: Node, fresh: Fresh, output: str, names: Sequence[str]) -> Iterator[Node]:
    """Yield the nodes that put what the rounds made side by side, along a new first axis."""
    rows = tuple(fresh(f"{output}/{index}") for index in range(len(names)))
    for name, row in zip(names, rows, strict=True):
        yield Node("Unsqueeze", f"{_where(node)}/{row}", (name,), (row,), {"axes": (0,)})
    yield Node("Concat", f"{_where(node)}/{output}", rows, (output,), {"axis": 0})


def _scan(view: NodeView, fresh: Fresh) -> Inlined:
    """Return a Loop of as many rounds as shapes say, which takes its part of each scanned input."""
    node, body = view.node, _body(view, "body")
    if view.integer("batched", 0):
        return _scan_of_each_image(view, fresh)
    scanned = view.integer("num_scan_inputs", 0)
    states = len(node.inputs) - scanned
    gathers = len(body.outputs) - states
    if scanned < 1 or states < 0 or gathers < 0 or len(body.inputs) != len(node.inputs):
        view.fail(f"scans {scanned} of its {len(node.inputs)} inputs, which does not fit its body")
    if len(node.outputs) != len(body.outputs):
        view.fail(f"has {len(node.outputs)} outputs, but its body makes {len(body.outputs)}")
    axes, rounds = _scanned_axes(view, states, scanned)
    where, own = _where(node), {*body.inputs, *body.made(), *body.constants, *body.captured()}
    number, goes_on, place, count, last = (
        _unlike(own, fresh(f"{where}/{name}"), fresh) for name in ("number", "goes_on", "place", "rounds", "last")
    )
    constants: dict[str, Value] = {count: np.asarray(rounds, np.int64), last: np.asarray(rounds - 1, np.int64)}
    names = {inner: _unlike(own, fresh(f"{where}/{inner}"), fresh) for inner in body.inputs[states:]}
    parts = [Node("Sub", place, (last, number), (place,))]
    backwards = _of_each(view, "scan_input_directions", scanned)
    for source, part, axis, back in zip(node.inputs[states:], names.values(), axes, backwards, strict=True):
        parts.append(Node("Gather", part, (source, place if back else number), (part,), {"axis": axis}))
    step = Subgraph(
        nodes=(*parts, *(one.renamed(names, one.name) for one in body.nodes)),
        inputs=(number, goes_on, *body.inputs[:states]),
        outputs=(goes_on, *(names.get(name, name) for name in body.outputs)),
        constants=body.constants,
    )
    stacked = tuple(name and fresh(f"{name}/stacked") for name in node.outputs[states:])
    inputs, outputs = (count, "", *node.inputs[:states]), (*node.outputs[:states], *stacked)
    nodes = [Node("Loop", node.name, inputs, outputs, {"body": step})]
    out_axes = view.integers("scan_output_axes", (0,) * gathers)
    out_backwards = _of_each(view, "scan_output_directions", gathers)
    for output, name, axis, back in zip(node.outputs[states:], stacked, out_axes, out_backwards, strict=True):
        if output:
            turned = fresh(f"{output}/backwards") if back else name
            if back:
                constants.update({f"{turned}/{key}": np.asarray([at], np.int64) for key, at in _BACKWARDS.items()})
                keys = (f"{turned}/{key}" for key in _BACKWARDS)
                nodes.append(Node("Slice", turned, (name, *keys), (turned,)))
            nodes.extend(_along(turned, output, axis, fresh))
    return Inlined(tuple(nodes), constants)


_BACKWARDS = {"starts": -1, "ends": np.iinfo(np.int64).min, "axes": 0, "steps": -1}
"""The inputs of a Slice that begins with the last row."""


def _along(rows: str, output: str, axis: int, fresh: Fresh) -> list[Node]:
    """Return the nodes that make a tensor whose first axis is another one."""
    if axis == 0:
        return [Node("Identity", output, (rows,), (output,))]
    each = fresh(f"{output}/each")
    return [
        Node("SplitToSequence", each, (rows,), (each,), {"axis": 0, "keepdims": 0}),
        Node("ConcatFromSequence", output, (each,), (output,), {"axis": axis, "new_axis": 1}),
    ]


def _unlike(own: Collection[str], name: str, fresh: Fresh) -> str:
    """Return a name that the body does not have either, which would hide it."""
    while name in own:
        name = fresh(name)
    return name


def _scan_of_each_image(view: NodeView, fresh: Fresh) -> Inlined:
    """Return a Scan for each element of the batch, the first axis of every tensor, as opset 8 has it."""
    node = view.node
    lengths, *sources = node.inputs
    if lengths or not sources:
        view.fail("has lengths for each sequence, which the engine does not take")
    batch = {view.shape(index)[:1] for index in range(1, len(node.inputs))}
    if len(batch) != 1 or batch <= {(), (0,)}:
        view.fail("needs the same batch, which is not 0, as the first axis of its inputs")
    attributes = {name: value for name, value in node.attributes.items() if name not in ("batched", "directions")}
    attributes["scan_input_directions"] = view.integers("directions", (0,) * view.integer("num_scan_inputs", 0))
    nodes: list[Node] = []
    constants: dict[str, Value] = {}
    made: dict[str, list[str]] = {output: [] for output in node.outputs if output}
    for image in range(next(iter(batch))[0]):
        where = f"{_where(node)}/image{image}"
        place = fresh(f"{where}/place")
        constants[place] = np.asarray(image, np.int64)
        parts = tuple(fresh(f"{where}/{source}") for source in sources)
        for source, part in zip(sources, parts, strict=True):
            nodes.append(Node("Gather", part, (source, place), (part,), {"axis": 0}))
        outputs = tuple(fresh(f"{where}/{output}") if output else "" for output in node.outputs)
        nodes.append(Node("Scan", where, parts, outputs, attributes))
        for output, part in zip(node.outputs, outputs, strict=True):
            if output:
                made[output].append(part)
    for output, parts_made in made.items():
        nodes.extend(_stacked(node, fresh, output, parts_made))
    return Inlined(tuple(nodes), constants)


def _scanned_axes(view: NodeView, states: int, scanned: int) -> tuple[tuple[int, ...], int]:
    """Return the axis along which each scanned input is scanned, and how many rounds that makes."""
    axes = tuple(
        view.axis(axis, len(view.shape(states + index)))
        for index, axis in enumerate(view.integers("scan_input_axes", (0,) * scanned))
    )
    rounds = {view.shape(states + index)[axis] for index, axis in enumerate(axes)}
    if len(axes) != scanned or len(rounds) != 1 or rounds == {0}:
        view.fail(f"scans inputs of {sorted(rounds)} elements; it needs one length that is not 0")
    return axes, rounds.pop()


def _of_each(view: NodeView, name: str, count: int) -> tuple[int, ...]:
    values = view.integers(name, (0,) * count)
    if len(values) != count:
        view.fail(f"has {len(values)} numbers as {name}, but it needs {count}")
    return values


CONTROL: Mapping[str, Callable[[NodeView, Fresh], Inlined]] = {"If": _if, "Loop": _loop, "Scan": _scan}
"""Operator → what stands in its place."""
