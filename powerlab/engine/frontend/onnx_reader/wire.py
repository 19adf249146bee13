"""The protobuf wire format: a buffer becomes numbered fields, without a schema and without the protobuf package.

Source: https://protobuf.dev/programming-guides/encoding. Work and memory are linear in the buffer: payloads are views.
"""

from __future__ import annotations

import importlib
from typing import Any

from powerlab.domain.errors import PowerlabError

MOST_FIELDS = 2**21
"""More fields than any network has, weights being one field each; one of two bytes may take some hundred of memory."""

Value = int | memoryview

native: Any = importlib.import_module("powerlab.native._native").protobuf


def malformed(what: str) -> PowerlabError:
    """Return the error for bytes that are no protobuf message."""
    return PowerlabError(f"it is no ONNX file, or not a whole one ({what}); export or download the model again.")


def fields(data: memoryview, most: int = MOST_FIELDS) -> list[tuple[int, int, Value]]:
    """Return (field number, wire type, value) in file order: a varint as int, anything else as its bytes.

    Args:
        data: the message.
        most: fields that are read; what is behind them is not looked at.

    Raises:
        PowerlabError: the bytes are truncated or no protobuf message.
    """
    try:
        found: list[tuple[int, int, Value]] = native.fields(data, most)
    except ValueError as error:
        raise malformed(str(error)) from None
    return found
