"""The parts of a step of training: forward pass, backward pass, update of the weights.

Between the last two a process waits for gradients to be added up, where several learn together.
"""

from __future__ import annotations

from collections.abc import Sequence

FORWARD, BACKWARD, UPDATE = PARTS = ("forward", "backward", "update")
REDUCE = "reduce"
PARTS_TOGETHER = (FORWARD, BACKWARD, REDUCE, UPDATE)
"""In several processes."""
_BACKWARD = ("loss.", ".gradient.")


def backward_from(labels: Sequence[str]) -> int:
    """Return the number of the first step of a plan that belongs to the backward pass, with which the loss counts.

    The nodes of both passes are in this order, and so are the steps of their plan.

    Args:
        labels: of the plan's steps: names of nodes, as :class:`powerlab.engine.training.tape.GraphTape` gives them.
    """
    marked = (number for number, label in enumerate(labels) if any(mark in label for mark in _BACKWARD))
    return next(marked, len(labels))
