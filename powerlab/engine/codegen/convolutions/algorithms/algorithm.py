"""What an algorithm for convolutions is: a class in a file of its own and a line in the table of this package."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from powerlab.engine.codegen.builder import Builder
from powerlab.engine.codegen.convolutions.conv_shape import ConvShape
from powerlab.engine.ir.graph import Node
from powerlab.engine.program.choice import Choice
from powerlab.engine.program.layout import Halo
from powerlab.engine.target.machine import Machine
from powerlab.engine.target.tiers import Tier


class Algorithm(Protocol):
    """One way to compute convolutions."""

    @property
    def name(self) -> str:
        """How choices call it."""

    def applies(self, shape: ConvShape, tier: Tier) -> bool:
        """Tell whether it can compute ``shape``."""

    def candidates(self, shape: ConvShape, machine: Machine) -> Sequence[Choice]:
        """Return the tiles and cuts worth a try, the most promising first; every one of them computes the same bits."""

    def cycles(self, shape: ConvShape, choice: Choice, machine: Machine) -> float:
        """Return how many cycles of a core the convolution is expected to take."""

    def halo(self, shape: ConvShape) -> Halo:
        """Return the zeros it needs around the planes of the input."""

    def emit(self, builder: Builder, node: Node, shape: ConvShape, choice: Choice) -> None:
        """Append the steps that compute a FusedConv of this shape."""
