"""Passes that write one ONNX operator as several simpler ones."""
