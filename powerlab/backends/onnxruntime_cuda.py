"""ONNX Runtime on an NVIDIA card, through its CUDA execution provider."""

from __future__ import annotations

from powerlab.backends.base import LoadOptions
from powerlab.backends.onnxruntime import OnnxRuntimeBackend, load_with


def load(options: LoadOptions) -> OnnxRuntimeBackend:
    """Load a model onto the first card; threads are those of the host's share of the work."""
    return load_with("onnxruntime-cuda", "CUDAExecutionProvider", options)
