"""Losses: what a step of training makes smaller. A new one is a function and a line in :data:`LOSSES`."""

from __future__ import annotations

from collections.abc import Callable

from powerlab.domain.choices import meant
from powerlab.domain.errors import PowerlabError
from powerlab.engine.ir.graph import Graph
from powerlab.engine.training.losses.base import Loss, Target
from powerlab.engine.training.losses.usual import mean_squared_error, softmax_cross_entropy
from powerlab.engine.training.losses.yolo import yolov3
from powerlab.engine.training.tape import GraphTape

__all__ = ["LOSSES", "Loss", "Target", "loss_named"]

LOSSES: dict[str, Callable[[GraphTape, Graph], Loss]] = {
    "mse": mean_squared_error,
    "softmax_cross_entropy": softmax_cross_entropy,
    "yolov3": yolov3,
}
"""Name → what adds it to a graph, given the network as it was loaded."""


def loss_named(name: str) -> Callable[[GraphTape, Graph], Loss]:
    """Return what adds a loss.

    Raises:
        PowerlabError: there is none of this name.
    """
    if name not in LOSSES:
        known = ", ".join(sorted(LOSSES))
        raise PowerlabError(f"there is no loss {name!r}{meant(name, sorted(LOSSES))}; known are {known}.")
    return LOSSES[name]
