"""Reverse-mode differentiation: to a forward pass come the nodes that compute the gradients of its parameters.

Source: A. Griewank and A. Walther, Evaluating Derivatives, 2nd edition, SIAM 2008, section 3.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from powerlab.domain.errors import PowerlabError
from powerlab.engine.ir.graph import Node, quoted
from powerlab.engine.ops import training_operator
from powerlab.engine.training.tape import GraphTape

_MANY = 3
"""From so many products on, one of what they multiply, joined, is faster than their sum."""

_OVER_ROWS: dict[str, object] = {"alpha": 1.0, "transA": 1, "transB": 0}


def want_gradients(tape: GraphTape, parameters: Sequence[str]) -> None:
    """Note which tensors are made of parameters."""
    tape.wanted.update(parameters)
    for node in tape.nodes:
        if not tape.wanted.isdisjoint(node.inputs):
            tape.wanted.update(filter(None, node.outputs))


def differentiate(tape: GraphTape, parameters: Sequence[str], seeds: dict[str, str]) -> dict[str, str]:
    """Add the nodes that compute gradients, and return the gradient of each parameter by its name.

    Args:
        tape: the forward pass; :func:`want_gradients` has looked at it.
        parameters: what gradients are wanted of.
        seeds: gradients of the loss, by the tensor of the forward pass.

    Raises:
        PowerlabError: an operator has no gradient, or the loss does not depend on a parameter.
    """
    parts: dict[str, list[str]] = {name: [gradient] for name, gradient in seeds.items()}
    for node in reversed(tuple(tape.nodes)):
        tape.begin(f"{node.name or node.outputs[0]}.gradient")
        made = tuple(_whole(tape, parts.pop(name, [])) for name in node.outputs)
        if not any(made) or tape.wanted.isdisjoint(node.inputs):
            continue
        rule = training_operator(node).gradient
        if rule is None:
            raise PowerlabError(f"{node} cannot be trained: the engine has no gradient for {node.op_type}.")
        for name, gradient in zip(node.inputs, rule(tape.view(node), tape, made), strict=False):
            if gradient and tape.wants(name):
                parts.setdefault(name, []).append(gradient)
    for name in parameters:
        if name not in parts:
            raise PowerlabError(f"the loss does not depend on the parameter {quoted(name)}, so it cannot be trained.")
    return {name: _whole(tape, parts[name]) for name in parameters}


def _whole(tape: GraphTape, parts: list[str]) -> str:
    """Return the sum of the gradients that a tensor's readers gave; ``""`` where none did."""
    if len(parts) >= _MANY:
        nodes = [node for node in map(tape.maker, parts) if node is not None and _is_over_rows(node)]
        if len(nodes) == len(parts):  # as of a recurrence's weights: the sum over all rows of all steps
            sides = (tape("Concat", *(node.inputs[side] for node in nodes), axis=0) for side in (0, 1))
            return tape("Gemm", *sides, **_OVER_ROWS)
    return reduce(lambda one, other: tape("Add", one, other), parts) if parts else ""


def _is_over_rows(node: Node) -> bool:
    return node.op_type == "Gemm" and len(node.inputs) == 2 and dict(node.attributes) == _OVER_ROWS
