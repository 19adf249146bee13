"""A convolution's weights that are a computed tensor, as training has them: one description for cores and GPUs."""

from __future__ import annotations

from msgspec import Struct

from powerlab.engine.program.operand import Operand


class ComputedWeights(Struct, frozen=True, eq=False):
    """Weights that change from run to run, so that a step of the plan packs them in front of the one that reads them.

    Attributes:
        values: (groups, outputs, inputs, rows, columns) of each group, of any strides.
        bias: one number an output channel of all groups; None: there is none.
        merged: how many groups become one, with zeros between them.
    """

    values: Operand
    bias: Operand | None = None
    merged: int = 1


def in_groups(weights: Operand, groups: int) -> Operand:
    """Return weights (outputs, inputs of a group, rows, columns) as (groups, outputs, inputs, rows, columns)."""
    return weights.split(0, (groups, weights.sizes[0] // groups))
