"""What an operator's result becomes, and what a rule is."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from msgspec import Struct

from powerlab.engine.ir.graph import Node
from powerlab.engine.passes.quantized.network import Network
from powerlab.engine.passes.quantized.scales import Scale

LARGEST_STEPS = 2**30
"""Of an output, with room for a residual: more are no number of 32 bits."""


class Target(Struct, frozen=True):
    """What an operator's result becomes.

    Attributes:
        output: the tensor that the new node makes.
        name: of the new node.
        scale: of the bytes; None where they stay floats.
        low: the smallest value there may be: an activation's, in floats.
        high: the largest one.
        slope: what values below 0 are multiplied by, before anything is added.
    """

    output: str
    name: str
    scale: Scale | None
    low: float = -np.inf
    high: float = np.inf
    slope: float = 1.0

    @property
    def step(self) -> float:
        """Return the step of the bytes; 1 where the result stays floats."""
        return 1.0 if self.scale is None else self.scale.step

    @property
    def is_open(self) -> bool:
        """Tell whether there is no activation."""
        return (self.low, self.high, self.slope) == (-np.inf, np.inf, 1.0)

    def attributes(self) -> dict[str, object]:
        """Return the bounds and the zero point as attributes of a node."""
        sloped: dict[str, object] = {} if self.slope == 1.0 else {"slope": self.slope}
        if self.scale is None:
            return {"low": self.low, "high": self.high, "zero": 0, "floats": True, **sloped}
        zero = self.scale.zero
        low, high = (float(self.scale.byte(bound) - zero) for bound in (self.low, self.high))
        return {"low": low, "high": high, "zero": zero, **sloped}


Rule = Callable[[Network, Node, Target], Node | None]
