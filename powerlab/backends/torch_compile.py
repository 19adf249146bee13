"""PyTorch with ``torch.compile``: the same operators as ``torch``, compiled by its default compiler when first run.

It compiles for minutes where a network is large, with a C++ compiler on the cores; that is part of loading.
"""

from __future__ import annotations

from powerlab.backends.base import LoadOptions
from powerlab.backends.torch import TorchBackend, load_with


def load(options: LoadOptions) -> TorchBackend:
    """Load a model; raises as :func:`powerlab.backends.torch.load_with` does."""
    return load_with("torch-compile", options, compiled=True)
