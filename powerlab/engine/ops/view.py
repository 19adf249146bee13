"""What an operator's rule sees of a node: attributes, input shapes and known values, each checked when asked for."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np
from msgspec import Struct

from powerlab.domain.errors import PowerlabError
from powerlab.engine.ir.constants import Value, value_of
from powerlab.engine.ir.graph import Array, Graph, NeedsRunError, Node, TensorInfo

Spec = tuple[tuple[int, ...], np.dtype[Any]]
"""Shape and type of the tensor an operator makes."""

FLOAT32: np.dtype[Any] = np.dtype(np.float32)
INT64: np.dtype[Any] = np.dtype(np.int64)
BOOL: np.dtype[Any] = np.dtype(np.bool_)

_LONGEST_REASON = 1000
"""Characters; a file may hold lists of any length."""


class NodeView(Struct, frozen=True):
    """A node with what is known of its inputs: ``infos`` and ``values`` run parallel to ``node.inputs``."""

    node: Node
    infos: tuple[TensorInfo | None, ...]
    values: tuple[Value | None, ...]

    @classmethod
    def of(cls, graph: Graph, node: Node) -> NodeView:
        """Return the view of a node of ``graph``; the values known are the graph's constants."""
        tensors, kept = graph.tensors, graph.kept_constants
        return cls(
            node,
            tuple([tensors[name] if name else None for name in node.inputs]),
            tuple([kept.get(name) for name in node.inputs]),
        )

    def fail(self, reason: str) -> NoReturn:
        """Raise PowerlabError: the node, then ``reason``, which continues the sentence and is cut where it is long."""
        if len(reason) > _LONGEST_REASON:
            reason = f"{reason[:_LONGEST_REASON]} ..."
        raise PowerlabError(f"{self.node} {reason}.")

    def needs_run(self, index: int, reason: str) -> NoReturn:
        """Raise NeedsRunError: input ``index`` decides what only a run can tell; ``reason`` continues the sentence."""
        raise NeedsRunError(f"{self.node} {reason}.", self.node.inputs[index])

    def has(self, index: int) -> bool:
        """Say whether input ``index`` is given."""
        return index < len(self.infos) and self.infos[index] is not None

    def _info(self, index: int) -> TensorInfo:
        info = self.infos[index] if index < len(self.infos) else None
        if info is None:
            self.fail(f"lacks its input {index + 1}")
        return info

    def shape(self, index: int) -> tuple[int, ...]:
        """Return the shape of input ``index``."""
        return self._info(index).shape

    def dtype(self, index: int) -> np.dtype[Any]:
        """Return the element type of input ``index``."""
        return self._info(index).dtype

    def floats(self, index: int, rank: int | None = None) -> tuple[int, ...]:
        """Return the shape of input ``index``, which must be float32 and, if given, of ``rank`` axes."""
        shape = self.shape(index)
        if self.dtype(index) != FLOAT32:
            self.fail(f"computes in float32, but its input {index + 1} is {self.dtype(index)}")
        if rank is not None and len(shape) != rank:
            self.fail(f"needs input {index + 1} with {rank} axes, but it has the shape {shape}")
        return shape

    def is_constant(self) -> bool:
        """Say whether the value of every input is known."""
        pairs = zip(self.infos, self.values, strict=True)
        return not [info for info, value in pairs if value is None and info is not None]

    def is_known(self, index: int) -> bool:
        """Say whether the value of input ``index`` is known without running the network."""
        return index < len(self.values) and self.values[index] is not None

    def constant(self, index: int) -> Array | None:
        """Return the value of input ``index`` where it is known."""
        value = self.values[index] if index < len(self.values) else None
        return None if value is None else value_of(value)

    def known(self, index: int) -> Value:
        """Return input ``index``, which must be known without running the network: its value, or the recipe of it."""
        self._info(index)
        value = self.values[index] if index < len(self.values) else None
        if value is None:
            self.needs_run(index, f"needs its input {index + 1} to be a constant, but only a run gives its value")
        return value

    def value(self, index: int) -> Array:
        """Return the value of input ``index``, which must be known without running the network."""
        return value_of(self.known(index))

    def int_values(self, index: int) -> tuple[int, ...]:
        """Return the known value of input ``index`` as integers."""
        value = self.value(index)
        if value.dtype.kind not in "iu" or value.ndim > 1:
            self.fail(f"needs input {index + 1} to be a list of integers")
        return tuple(value.reshape(-1).tolist())

    def has_attribute(self, name: str) -> bool:
        """Say whether the attribute is given."""
        return name in self.node.attributes

    def _attribute(self, name: str, kinds: tuple[type, ...], what: str) -> Any:
        value = self.node.attributes[name]
        if not isinstance(value, kinds):
            self.fail(f"has the attribute {name}, which must be {what}")
        return value

    def integer(self, name: str, default: int) -> int:
        """Return a whole-number attribute."""
        return int(self._attribute(name, (int,), "an integer")) if self.has_attribute(name) else default

    def number(self, name: str, default: float) -> float:
        """Return a float attribute."""
        if not self.has_attribute(name):
            return default
        number = float(self._attribute(name, (float, int), "a number"))
        if math.isnan(number):
            self.fail(f"has the attribute {name}, which is not a number (NaN)")
        return number

    def text(self, name: str, default: str) -> str:
        """Return a text attribute."""
        return str(self._attribute(name, (str,), "a text")) if self.has_attribute(name) else default

    def texts(self, name: str, default: tuple[str, ...]) -> tuple[str, ...]:
        """Return a list of texts."""
        if not self.has_attribute(name):
            return default
        value = self._attribute(name, (tuple,), "a list of texts")
        if not all(isinstance(text, str) for text in value):
            self.fail(f"has the attribute {name}, which must be a list of texts")
        return tuple(value)

    def integers(self, name: str, default: tuple[int, ...]) -> tuple[int, ...]:
        """Return a list of integers."""
        if not self.has_attribute(name):
            return default
        value = self._attribute(name, (tuple,), "a list of integers")
        if not all(isinstance(number, int) for number in value):
            self.fail(f"has the attribute {name}, which must be a list of integers")
        return tuple(value)

    def numbers(self, name: str, default: tuple[float, ...]) -> tuple[float, ...]:
        """Return a list of numbers."""
        if not self.has_attribute(name):
            return default
        value = self._attribute(name, (tuple,), "a list of numbers")
        if not all(isinstance(number, (int, float)) for number in value):
            self.fail(f"has the attribute {name}, which must be a list of numbers")
        return tuple(float(number) for number in value)

    def axis(self, value: int, rank: int) -> int:
        """Return an axis counted from the front; ``value`` may count from the back."""
        if not -rank <= value < rank:
            self.fail(f"names the axis {value}, but its input has {rank} axes")
        return value % rank

    def axes(self, values: tuple[int, ...], rank: int) -> tuple[int, ...]:
        """Return axes counted from the front, sorted, each once."""
        axes = tuple(sorted(self.axis(value, rank) for value in values))
        if len(set(axes)) < len(axes):
            self.fail(f"names an axis twice in {values}")
        return axes

    def evaluated(
        self, evaluate: Callable[[NodeView], Array | tuple[Array, ...]], made: Sequence[TensorInfo]
    ) -> dict[str, Array]:
        """Return what the node makes from known values, by name, in the types and shapes that were inferred.

        Raises:
            PowerlabError: the values do not allow it, as an index that is out of range.
        """
        try:
            with np.errstate(all="ignore"):
                values = evaluate(self)
        except (ValueError, IndexError, OverflowError) as error:
            self.fail(f"cannot be computed ({error})")
        results = {}
        for info, value in zip(made, values if isinstance(values, tuple) else (values,), strict=False):
            if not info.name:
                continue  # an output that nobody reads
            result = np.asarray(value)
            if result.shape != info.shape:
                self.fail(f"makes the shape {result.shape} where {info.shape} was expected")
            results[info.name] = result.astype(info.dtype, copy=False)
        return results
