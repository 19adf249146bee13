"""Optimizers: how gradients move weights. A new one is a class and a line in :data:`OPTIMIZERS`.

All follow PyTorch's definitions (https://pytorch.org/docs/stable/optim.html), so that figures can be compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from msgspec import Struct

from powerlab.domain.choices import meant
from powerlab.domain.errors import PowerlabError
from powerlab.engine.training.tape import GraphTape


class Moved(Struct, frozen=True, kw_only=True):
    """A weight that an optimizer moves: names of tensors.

    Attributes:
        weight: before the step.
        gradient: of the loss, or a sum of several.
        kept: what the optimizer keeps of the weight, before the step.
        share: of the gradient that counts.
    """

    weight: str
    gradient: str
    kept: tuple[str, ...]
    share: float = 1.0

    def by(self, tape: GraphTape, operator: str, numbers: tuple[str, ...], **more: object) -> tuple[str, ...]:
        """Add the operator that moves it, and return the weight, then what is kept, after the step."""
        count = len(self.kept)
        inputs = (self.weight, self.gradient, *self.kept, *numbers)
        return tape.several(operator, *inputs, made=1 + count, kept=count, share=self.share, **more)


class Optimizer(Protocol):
    """How gradients move weights.

    Attributes:
        slots: numbers that are kept for each weight beside itself, 0 at first.
    """

    @property
    def slots(self) -> tuple[str, ...]:
        """Return their names."""

    def numbers(self, step: int) -> Mapping[str, float]:
        """Return what a step is given beside its data; the first step is 1."""

    def update(self, tape: GraphTape, moved: Moved, numbers: Mapping[str, str]) -> tuple[str, ...]:
        """Add the node that computes a weight anew, and return it, then its slots.

        Args:
            tape: takes the node.
            moved: the weight.
            numbers: the inputs that hold what :meth:`numbers` gives.
        """


class Sgd(Struct, frozen=True, kw_only=True):
    """Stochastic gradient descent, with momentum where it is not 0.

    Attributes:
        rate: learning rate.
        momentum: share of the velocity that is kept.
        nesterov: whether the gradient is taken ahead, as Nesterov's method does.
        decay: weight decay.
    """

    rate: float = 0.01
    momentum: float = 0.0
    nesterov: bool = False
    decay: float = 0.0

    @property
    def slots(self) -> tuple[str, ...]:
        """Return the velocity, where there is momentum."""
        return ("velocity",) if self.momentum else ()

    def numbers(self, step: int) -> Mapping[str, float]:
        """Return the settings, which need not be the same in every step."""
        del step
        return {"rate": self.rate, "momentum": self.momentum, "decay": self.decay}

    def update(self, tape: GraphTape, moved: Moved, numbers: Mapping[str, str]) -> tuple[str, ...]:
        """Add the node of an update."""
        given = tuple(numbers[name] for name in ("rate", "momentum", "decay"))
        return moved.by(tape, "SgdUpdate", given, nesterov=int(self.nesterov))


class Adam(Struct, frozen=True, kw_only=True):
    """Adam (https://arxiv.org/abs/1412.6980); AdamW (https://arxiv.org/abs/1711.05101) where decay is decoupled.

    Attributes:
        rate: learning rate.
        beta1: share of the first moment that is kept.
        beta2: share of the second moment that is kept.
        epsilon: added to the root of the second moment.
        decay: weight decay.
        decoupled: whether weights decay by themselves, and not through their gradients.
    """

    rate: float = 0.001
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    decay: float = 0.0
    decoupled: bool = False

    @property
    def slots(self) -> tuple[str, ...]:
        """Return both moments."""
        return ("first", "second")

    def numbers(self, step: int) -> Mapping[str, float]:
        """Return the settings, the rate with what makes up for moments that began at 0."""
        return {
            "rate": self.rate / (1 - self.beta1**step),
            "root": (1 - self.beta2**step) ** -0.5,
            "beta1": self.beta1,
            "rest1": 1 - self.beta1,
            "beta2": self.beta2,
            "rest2": 1 - self.beta2,
            "epsilon": self.epsilon,
            "decay": 1 - self.rate * self.decay if self.decoupled else self.decay,
        }

    def update(self, tape: GraphTape, moved: Moved, numbers: Mapping[str, str]) -> tuple[str, ...]:
        """Add the node of an update."""
        names = ("rate", "root", "beta1", "rest1", "beta2", "rest2", "epsilon", "decay")
        given = tuple(numbers[name] for name in names)
        return moved.by(tape, "AdamUpdate", given, decoupled=int(self.decoupled))


OPTIMIZERS: dict[str, Sgd | Adam] = {
    "adam": Adam(),
    "adamw": Adam(decay=0.01, decoupled=True),
    "momentum": Sgd(momentum=0.9),
    "nesterov": Sgd(momentum=0.9, nesterov=True),
    "sgd": Sgd(),
}
"""Name → the optimizer with its usual settings."""


def optimizer_named(name: str) -> Sgd | Adam:
    """Return an optimizer with its usual settings.

    Raises:
        PowerlabError: there is none of this name.
    """
    if name not in OPTIMIZERS:
        known = ", ".join(sorted(OPTIMIZERS))
        raise PowerlabError(f"there is no optimizer {name!r}{meant(name, sorted(OPTIMIZERS))}; known are {known}.")
    return OPTIMIZERS[name]
