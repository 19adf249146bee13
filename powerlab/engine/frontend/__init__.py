"""Everything that makes a graph: the ONNX reader, the model zoo, and :mod:`.load`, which takes a name or a path."""
