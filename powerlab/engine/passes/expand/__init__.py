"""Passes that replace one ONNX operator by several simpler ones. Start at :mod:`.expansion`, the helper they share."""
