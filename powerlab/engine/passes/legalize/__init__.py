"""Passes that rewrite ONNX operators into the few that code generation knows; :mod:`.check` refuses what is left."""
