"""The built-in inference engine: ONNX or a zoo model in, a C++ plan out.

from powerlab.engine import Session
outputs = Session("resnet50", threads=2).run({"x": images})
"""
