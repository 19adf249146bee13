"""Gradients of what is computed element by element from several tensors, broadcast."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from powerlab.engine.ops.gradients.base import Gradient, Tape
from powerlab.engine.ops.view import NodeView


def _summed(view: NodeView, tape: Tape, rules: Sequence[Callable[[], str]]) -> list[str]:
    """Return what each rule gives, in the shape of its input; rules of inputs that need no gradient are not asked."""
    return [
        tape.sum_to(rule(), view.shape(index)) if tape.wants(view.node.inputs[index]) else ""
        for index, rule in enumerate(rules)
    ]


def _add(view: NodeView, tape: Tape, gradients: tuple[str, ...]) -> Sequence[str]:
    return _summed(view, tape, [lambda: gradients[0]] * len(view.node.inputs))


def _sub(view: NodeView, tape: Tape, gradients: tuple[str, ...]) -> Sequence[str]:
    return _summed(view, tape, (lambda: gradients[0], lambda: tape("Neg", gradients[0])))


def _mul(view: NodeView, tape: Tape, gradients: tuple[str, ...]) -> Sequence[str]:
    left, right = view.node.inputs
    return _summed(view, tape, (lambda: tape("Mul", gradients[0], right), lambda: tape("Mul", gradients[0], left)))


def _div(view: NodeView, tape: Tape, gradients: tuple[str, ...]) -> Sequence[str]:
    right, quotient = view.node.inputs[1], view.node.outputs[0]
    over = tape("Div", gradients[0], right)
    return _summed(view, tape, (lambda: over, lambda: tape("Neg", tape("Mul", over, quotient))))


def _mean(view: NodeView, tape: Tape, gradients: tuple[str, ...]) -> Sequence[str]:
    count = len(view.node.inputs)
    part = tape("Mul", gradients[0], tape.floats(1 / count))
    return _summed(view, tape, [lambda: part] * count)


def _pow(view: NodeView, tape: Tape, gradients: tuple[str, ...]) -> Sequence[str]:
    """Of the base alone: an exponent is a number that somebody wrote down."""
    base, exponent = view.node.inputs
    if tape.wants(exponent):
        view.fail("has an exponent that is a parameter or made of one, for which there is no gradient")
    slope = tape("Mul", tape("Pow", base, tape.floats(view.value(1).astype("f4") - 1)), tape.floats(view.value(1)))
    return _summed(view, tape, (lambda: tape("Mul", gradients[0], slope),))


def _chosen(operator: str) -> Gradient:
    """Return the gradient of Max or Min of two tensors; where both are as large, half goes to each."""

    def rule(view: NodeView, tape: Tape, gradients: tuple[str, ...]) -> Sequence[str]:
        if len(view.node.inputs) != 2:
            view.fail("takes more or fewer than two tensors, for which there is no gradient")
        left, right = view.node.inputs
        half, zero = tape.floats(0.5), tape.floats(0.0)
        equal = tape("Equal", left, right)

        def of(one: str, other: str) -> str:
            own = tape("Where", tape(operator, one, other), gradients[0], zero)
            return tape("Where", equal, tape("Mul", gradients[0], half), own)

        return _summed(view, tape, (lambda: of(left, right), lambda: of(right, left)))

    return rule


def _where(view: NodeView, tape: Tape, gradients: tuple[str, ...]) -> Sequence[str]:
    (condition, yes, no), zero = view.node.inputs, tape.floats(0.0)
    found = ["", "", ""]
    if tape.wants(yes):
        found[1] = tape.sum_to(tape("Where", condition, gradients[0], zero), view.shape(1))
    if tape.wants(no):
        found[2] = tape.sum_to(tape("Where", condition, zero, gradients[0]), view.shape(2))
    return found


def _prelu(view: NodeView, tape: Tape, gradients: tuple[str, ...]) -> Sequence[str]:
    x, slope = view.node.inputs
    below, zero = tape("Less", x, tape.floats(0.0)), tape.floats(0.0)
    return _summed(
        view,
        tape,
        (
            lambda: tape("Where", below, tape("Mul", gradients[0], slope), gradients[0]),
            lambda: tape("Where", below, tape("Mul", gradients[0], x), zero),
        ),
    )


GRADIENTS: dict[str, Gradient] = {
    "Add": _add,
    "Div": _div,
    "Max": _chosen("Greater"),
    "Mean": _mean,
    "Min": _chosen("Less"),
    "Mul": _mul,
    "PRelu": _prelu,
    "Pow": _pow,
    "Sub": _sub,
    "Sum": _add,
    "Where": _where,
}
"""Operator → rule."""
