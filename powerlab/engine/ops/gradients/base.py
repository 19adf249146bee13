"""What a gradient's rule is given, and what it returns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from powerlab.engine.ops.view import NodeView


class Tape(Protocol):
    """Takes the nodes that compute gradients; names are tensors of the graph that grows."""

    def __call__(self, op_type: str, *inputs: str, **attributes: object) -> str:
        """Add a node with one output, and return the output's name."""

    def several(self, op_type: str, *inputs: str, made: int, **attributes: object) -> tuple[str, ...]:
        """Add a node with ``made`` outputs, and return their names."""

    def wants(self, tensor: str) -> bool:
        """Say whether anybody needs the gradient of ``tensor``: it is a parameter, or made of one."""

    def shape(self, tensor: str) -> tuple[int, ...]:
        """Return the shape of a tensor."""

    def floats(self, values: Any) -> str:
        """Add a constant of float32 and return its name."""

    def ints(self, values: Iterable[int]) -> str:
        """Add a constant list of integers and return its name."""

    def reshape(self, tensor: str, shape: Iterable[int]) -> str:
        """Return a tensor in another shape."""

    def sum_to(self, tensor: str, shape: tuple[int, ...]) -> str:
        """Return a tensor summed over the axes along which ``shape`` was broadcast to it."""


Gradient = Callable[[NodeView, Tape, tuple[str, ...]], Sequence[str]]
"""Given a node, and the gradients of its outputs (``""``: nobody read that one), gives those of its inputs.

``""`` stands for inputs without a gradient, such as shapes. The last ones may be left out.
"""
