"""The element types of ONNX tensors that the engine reads, by their numbers in TensorProto.DataType."""

from __future__ import annotations

from typing import Any

import numpy as np

FLOAT, DOUBLE = 1, 11
DTYPES: dict[int, np.dtype[Any]] = {
    FLOAT: np.dtype("<f4"),
    2: np.dtype("u1"),
    3: np.dtype("i1"),
    4: np.dtype("<u2"),
    5: np.dtype("<i2"),
    6: np.dtype("<i4"),
    7: np.dtype("<i8"),
    9: np.dtype("?"),
    10: np.dtype("<f2"),
    DOUBLE: np.dtype("<f8"),
    12: np.dtype("<u4"),
    13: np.dtype("<u8"),
}
"""ONNX element type number → numpy type."""


def engine_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type in which the engine holds values of ``dtype``: every float is float32."""
    return np.dtype(np.float32) if dtype.kind == "f" else dtype
