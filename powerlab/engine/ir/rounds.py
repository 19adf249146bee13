"""A Loop as a graph of one round, where every round makes tensors of the same shapes: it is planned once.

Source: https://onnx.ai/onnx/operators/onnx__Loop.html.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import numpy as np
from msgspec import Struct

from powerlab.engine.ir.constants import Value
from powerlab.engine.ir.graph import Graph, NeedsRunError, Node, Subgraph, TensorInfo
from powerlab.engine.ir.shapes import infer


class Round(Struct, frozen=True):
    """One round of a Loop.

    Attributes:
        graph: its inputs are the number of the round and the tensors that change, and those around the Loop.
        number: the input that is the number of the round.
        goes_on: the output that says whether there is another round; empty: what the body says is ignored, as ONNX has
            it where a Loop begins without a condition.
        states: for each tensor that is carried the input, and the output that is this input in the next round; the same
            name where no round changes it, which is then that of the tensor around the Loop.
        gathered: the outputs of which each round's is kept.
    """

    graph: Graph
    number: str
    goes_on: str
    states: tuple[tuple[str, str], ...]
    gathered: tuple[str, ...]


def one_round(node: Node, tensors: Mapping[str, TensorInfo], constants: Mapping[str, Value]) -> Round | None:
    """Return a round of a Loop; None where its rounds are not alike, or values that only a run gives decide shapes.

    Args:
        node: a Loop of which no round stands yet.
        tensors: name → shape and type of all that the Loop reads.
        constants: those of them that are known.

    Raises:
        PowerlabError: the nodes of the body do not fit together.
    """
    body = cast(Subgraph, node.attributes["body"])
    carried = node.inputs[2:]
    if len(body.inputs) != 2 + len(carried) or len(body.outputs) < 1 + len(carried):
        return None
    number, goes_on, *states = body.inputs
    passed_on = _sources(body)
    results = [passed_on.get(name, name) for name in body.outputs]
    names = {state: outer for state, outer, made in zip(states, carried, results[1:], strict=False) if made == state}
    own = {*body.made(), *body.inputs, *body.constants}
    if not own.isdisjoint(names.values()) or not tensors.keys() >= {*carried, *body.captured()}:
        return None
    around = {*body.captured(), *names.values()}
    known = {**body.constants, **{name: constants[name] for name in around if name in constants}}
    known[goes_on] = np.asarray(True)
    changing = [(state, outer) for state, outer in zip(states, carried, strict=True) if state not in names]
    inputs = [TensorInfo(number, (), np.dtype(np.int64))]
    inputs += [TensorInfo(state, tensors[outer].shape, tensors[outer].dtype) for state, outer in changing]
    inputs += [tensors[name] for name in sorted(around - known.keys())]
    pairs = tuple(
        (names.get(state, state), names.get(made, made)) for state, made in zip(states, results[1:], strict=False)
    )
    gathered = tuple(names.get(name, name) for name in results[1 + len(carried) :])
    says = body.outputs[0] if node.input(1) else ""
    wanted = (says, *(made for state, made in pairs if state != made), *gathered)
    try:
        graph = infer(
            node.name, body.renamed(names, node.name), inputs, tuple(dict.fromkeys(filter(None, wanted))), known
        )
    except NeedsRunError:
        return None
    shapes = {info.name: (info.shape, info.dtype) for info in (*graph.inputs, *graph.outputs)}
    if any(shapes[state] != shapes[made] for state, made in pairs if state != made):
        return None
    return Round(graph, number, says, pairs, gathered)


def _sources(body: Subgraph) -> dict[str, str]:
    """Return name → input of the body, for what the body only gives another name."""
    found = dict(zip(body.inputs, body.inputs, strict=True))
    for node in body.nodes:
        if node.op_type == "Identity" and node.input(0) in found:
            found[node.outputs[0]] = found[node.input(0)]
    return found
