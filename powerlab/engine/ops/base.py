"""The rule of one operator: how it makes a shape, and where it helps constant folding, how it makes values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from powerlab.engine.ir.graph import Array, TensorInfo
from powerlab.engine.ops.view import NodeView, Spec

if TYPE_CHECKING:
    from powerlab.engine.ops.gradients.base import Gradient


class Operator(Struct, frozen=True):
    """``infer`` gives the shape and type of the output, or raises PowerlabError naming the node.

    ``infer_more`` gives those of the outputs after the first; None: it makes one.
    ``by_values`` says that the values of its inputs, however large, decide the shape of what it makes.
    ``evaluate`` gives the value when all inputs are known (``of_shape``: when their shapes are, as for Shape), or the
    values of all outputs; ``infer`` has been asked before, so shapes are sound.
    ``gradient`` adds the nodes that compute the gradients of its inputs; None: a network with it cannot be trained.
    """

    infer: Callable[[NodeView], Spec]
    evaluate: Callable[[NodeView], Array | tuple[Array, ...]] | None = None
    of_shape: bool = False
    infer_more: Callable[[NodeView], tuple[Spec, ...]] | None = None
    by_values: bool = False
    gradient: Gradient | None = None

    def specs(self, view: NodeView) -> tuple[Spec, ...]:
        """Return the shapes and types of all outputs of a node."""
        one = self.infer(view)
        return (one,) if self.infer_more is None else (one, *self.infer_more(view))

    def folds(self, view: NodeView, made: Sequence[TensorInfo]) -> bool:
        """Say whether the values of the node's outputs ``made`` can be told without a run."""
        return _empty(made) or (self.evaluate is not None and (self.of_shape or view.is_constant()))

    def folded(self, view: NodeView, made: Sequence[TensorInfo]) -> dict[str, Array]:
        """Return the values of the node's outputs ``made`` by their names; none where only a run can tell."""
        if _empty(made):
            return {info.name: np.zeros(info.shape, info.dtype) for info in made if info.name}
        knows = self.evaluate is not None and (self.of_shape or view.is_constant())
        return view.evaluated(self.evaluate, made) if self.evaluate is not None and knows else {}


def of_values(evaluate: Callable[[NodeView], Array | tuple[Array, ...]]) -> Operator:
    """Return the rule of an operator of which values decide what shape it makes; ``evaluate`` checks its inputs."""

    def specs(view: NodeView) -> tuple[Spec, ...]:
        made = evaluate(view)
        return tuple((value.shape, value.dtype) for value in (made if isinstance(made, tuple) else (made,)))

    return Operator(lambda view: specs(view)[0], evaluate, infer_more=lambda view: specs(view)[1:], by_values=True)


def _empty(made: Sequence[TensorInfo]) -> bool:
    """Say whether tensors have no elements, so that their values are known whatever their node computes."""
    return not [info for info in made if info.name and info.elements]


def same_as_input(view: NodeView) -> Spec:
    """Return the shape and type of the first input."""
    return view.shape(0), view.dtype(0)
