"""TensorRT on an NVIDIA card, through ONNX Runtime's execution provider for it."""

from __future__ import annotations

from powerlab.backends.base import LoadOptions
from powerlab.backends.onnxruntime import OnnxRuntimeBackend, load_with


def load(options: LoadOptions) -> OnnxRuntimeBackend:
    """Load a model onto the first card; TensorRT builds its engine now, which takes minutes."""
    return load_with("onnxruntime-tensorrt", "TensorrtExecutionProvider", options, {"trt_fp16_enable": True})
