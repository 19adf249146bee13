"""Inference engines under test, one per file, behind one interface.

Start at :mod:`.base`. A new engine is one module and a line in :mod:`.registry`; models reach other engines as ONNX,
TFLite or ncnn files made from powerlab's own graph.
"""
