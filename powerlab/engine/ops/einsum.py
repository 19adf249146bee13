"""Einsum: sums of products over letters, https://onnx.ai/onnx/operators/onnx__Einsum.html."""

from __future__ import annotations

import string
from collections import Counter

import numpy as np
from msgspec import Struct

from powerlab.engine.ops.base import Operator
from powerlab.engine.ops.view import FLOAT32, NodeView, Spec


class Equation(Struct, frozen=True):
    """An equation with a letter for each axis, those that "..." stands for too.

    Attributes:
        terms: the letters of each input.
        result: those of the output.
        sizes: letter → size; 1 where it is broadcast in one input.
    """

    terms: tuple[str, ...]
    result: str
    sizes: dict[str, int]


def equation_of(view: NodeView) -> Equation:
    """Return a node's equation.

    Raises:
        PowerlabError: it does not fit the inputs.
    """
    text = view.text("equation", "").replace(" ", "")
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    shapes = [view.floats(index) for index in range(len(view.infos))]
    if len(terms) != len(shapes) or not set(text) <= {*string.ascii_letters, ",", ".", "-", ">"}:
        view.fail(f"has the equation {text[:80]!r} for {len(shapes)} inputs")
    spare = [letter for letter in string.ascii_letters if letter not in text]
    hidden = [_hidden(term, shape) for term, shape in zip(terms, shapes, strict=True)]
    most = max(0, *hidden)
    if most > len(spare):
        view.fail(f"has the equation {text[:80]!r} with more axes than there are letters")
    dots = "".join(spare[:most])
    named = tuple(term.replace("...", dots[most - count :]) for term, count in zip(terms, hidden, strict=True))
    if not arrow:
        counted = Counter("".join(term.replace("...", "") for term in terms))
        right = "..." * bool(most) + "".join(sorted(letter for letter, count in counted.items() if count == 1))
    result = right.replace("...", dots)
    return Equation(named, result, _sizes(view, text, named, result, shapes))


def _hidden(term: str, shape: tuple[int, ...]) -> int:
    """Return how many axes the dots of a term stand for."""
    return max(0, len(shape) - len(term.replace("...", ""))) if "..." in term else 0


def _sizes(
    view: NodeView, text: str, terms: tuple[str, ...], result: str, shapes: list[tuple[int, ...]]
) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for term, shape in zip(terms, shapes, strict=True):
        if len(term) != len(shape) or "." in term:
            view.fail(f"has the equation {text[:80]!r}, which does not fit the shape {shape}")
        for letter, size in zip(term, shape, strict=True):
            known = sizes.get(letter, 1)
            if 1 not in (known, size) and known != size:
                view.fail(f"has the equation {text[:80]!r}, in which {letter} is {known} and {size}")
            sizes[letter] = max(known, size)
    if not set(result) <= sizes.keys() or len(set(result)) < len(result):
        view.fail(f"has the equation {text[:80]!r}, whose result has other letters than its inputs or one twice")
    return sizes


def _einsum(view: NodeView) -> Spec:
    equation = equation_of(view)
    return tuple(equation.sizes[letter] for letter in equation.result), FLOAT32


def _value(view: NodeView) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    values = [view.value(index) for index in range(len(view.infos))]
    return np.asarray(np.einsum(view.text("equation", ""), *values), np.float32)


EINSUM = Operator(_einsum, _value)
