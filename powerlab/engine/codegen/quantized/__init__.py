"""Lowering of quantized operators: tensors of bytes."""
