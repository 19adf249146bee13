"""Training with the built-in engine: a step is one graph, planned like that of an inference."""

from __future__ import annotations

from powerlab.engine.training.losses import LOSSES
from powerlab.engine.training.optimizers import OPTIMIZERS, Adam, Sgd
from powerlab.engine.training.session import TrainingSession

__all__ = ["LOSSES", "OPTIMIZERS", "Adam", "Sgd", "TrainingSession"]
