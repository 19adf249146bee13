"""AttributeProto to plain Python: int, float, str, tuples of them, or an array; graphs are read by :mod:`build`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from powerlab.domain.errors import PowerlabError
from powerlab.engine.frontend.onnx_reader.schema import Attribute, Tensor
from powerlab.engine.frontend.onnx_reader.tensors import to_array
from powerlab.engine.ir.graph import quoted

_READERS: dict[int, Callable[[Attribute, Path | None], object]] = {
    1: lambda attribute, _: attribute.f,
    2: lambda attribute, _: attribute.i,
    3: lambda attribute, _: str(attribute.s, "utf-8", "replace"),
    4: lambda attribute, folder: to_array(attribute.t or Tensor(), folder),
    6: lambda attribute, _: tuple(attribute.floats),
    7: lambda attribute, _: tuple(attribute.ints),
    8: lambda attribute, _: tuple(attribute.strings),
}
"""AttributeProto.AttributeType → how to read the value."""


def to_value(attribute: Attribute, folder: Path | None) -> object:
    """Return the attribute's value.

    Raises:
        PowerlabError: it is a sparse tensor, a list of graphs, or refers to a function's attribute.
    """
    read = _READERS.get(attribute.type)
    if read is None or attribute.ref_attr_name:
        raise PowerlabError(
            f"the attribute {quoted(attribute.name)} is of a kind the engine does not read; export the model again."
        )
    return read(attribute, folder)
