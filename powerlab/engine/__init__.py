"""The built-in inference engine: an ONNX file or a zoo model in, a native plan out, run in one call.

from powerlab.engine import Session

session = Session("resnet50", threads=2)
outputs = session.run({"x": images})  # float32 arrays, NCHW

The way of a model: ``load`` reads it into a ``graph``; ``passes`` simplify that; ``lower`` decides layouts and kernels;
``arena`` gives every tensor its address; ``plan`` hands it all to the native core.
"""

from powerlab.engine.session import Session

__all__ = ["Session"]
