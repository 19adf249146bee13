"""Training in PyTorch with ``torch.compile``: forward pass and gradients are compiled by its default compiler.

That takes a C++ compiler and, for a large network, minutes; it is part of loading.
"""

from __future__ import annotations

from powerlab.backends.base import LoadOptions
from powerlab.backends.training.torch import TorchTrainer, load_with


def load(options: LoadOptions) -> TorchTrainer:
    """Load a model; raises as :func:`powerlab.backends.training.torch.load_with` does."""
    return load_with("torch-compile", options, compiled=True)
