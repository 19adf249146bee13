"""TensorProto to numpy: raw, typed and external data; every float becomes float32, the engine's one float.

Types that numpy lacks are held as :mod:`powerlab.engine.ir.narrow_types` says.
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct

from powerlab.domain.errors import PowerlabError
from powerlab.engine.frontend.onnx_reader.file import DataFile
from powerlab.engine.frontend.onnx_reader.schema import Tensor
from powerlab.engine.ir.constants import LARGE_ELEMENTS, Recipe, Value, value_of
from powerlab.engine.ir.element_types import DOUBLE, DTYPES, FLOAT, engine_dtype
from powerlab.engine.ir.graph import Array, quoted
from powerlab.engine.ir.narrow_types import NARROW, Narrow, held, storage, stored_count, unpacked
from powerlab.engine.ir.shapes import checked_shape

EXTERNAL = 1


class _Elements(Struct, frozen=True):
    """The elements of a tensor in a file: ``count`` numbers of ``dtype``, of a type that numpy lacks as its codes."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    count: int
    narrow: Narrow | None

    @property
    def held(self) -> np.dtype[Any]:
        """Return the type in which the engine holds them."""
        return engine_dtype(self.dtype) if self.narrow is None else held(self.narrow)

    def shaped(self, flat: Array) -> Array:
        """Return numbers of the file as the engine holds them."""
        if self.narrow is not None:
            flat = self.narrow.decoded(unpacked(flat, self.narrow, math.prod(self.shape)))
        if flat.dtype == self.held:
            return flat.reshape(self.shape)
        with np.errstate(over="ignore"):
            return flat.astype(self.held).reshape(self.shape)


def element_type(number: int, owner: str) -> np.dtype[Any]:
    """Return the numpy type of ONNX element type ``number``; ``owner`` names the tensor in the error.

    Of a type that numpy lacks, the one in which the engine holds it.
    """
    if number in NARROW:
        return held(NARROW[number])
    if number not in DTYPES:
        raise PowerlabError(
            f"{owner} has the ONNX element type {number}, which the engine does not read; export the model in float32."
        )
    return DTYPES[number]


def _elements(number: int, shape: tuple[int, ...], owner: str) -> _Elements:
    narrow, count = NARROW.get(number), math.prod(shape)
    if narrow is None:
        return _Elements(shape, element_type(number, owner), count, None)
    return _Elements(shape, storage(narrow), stored_count(narrow, count), narrow)


def to_array(tensor: Tensor, folder: Path | None) -> Array:
    """Return the tensor's values in its shape, as :func:`to_constant` does, without a file."""
    return value_of(to_constant(tensor, folder, None))


def to_constant(tensor: Tensor, folder: Path | None, file: DataFile | None) -> Value:
    """Return the tensor's values in its shape; large ones that lie in a file are a recipe.

    Args:
        tensor: the message.
        folder: where the model lies, for external data; None: external data is refused.
        file: the file that the message's bytes are mapped from, None where they are not.

    Raises:
        PowerlabError: type, shape and data do not fit together, or the external file is missing or outside ``folder``.
    """
    owner = f"the tensor {quoted(tensor.name)}"
    shape = tuple(tensor.dims)
    checked_shape(shape, owner)
    elements = _elements(tensor.data_type, shape, owner)
    dtype = elements.dtype
    if tensor.data_location == EXTERNAL:
        return _in_file(*_external(tensor, elements, folder, owner), elements)
    if tensor.raw_data is not None:
        if len(tensor.raw_data) != elements.count * dtype.itemsize:
            raise _size_error(owner, shape, len(tensor.raw_data) / dtype.itemsize)
        if file is not None and elements.count >= LARGE_ELEMENTS:
            return _in_file(file, file.offset_of(tensor.raw_data), elements)
        flat = np.frombuffer(tensor.raw_data, dtype)
        flat = flat if file is None else flat.copy()  # else the whole file stays mapped
    else:
        flat = _typed(tensor, dtype)
    if flat.size != elements.count:
        raise _size_error(owner, shape, flat.size)
    return elements.shaped(flat)


def _in_file(file: DataFile, offset: int, elements: _Elements) -> Value:
    """Return values that lie in a file from ``offset`` bytes on: a small array, or the recipe of a large one."""

    def read() -> Array:
        return elements.shaped(file.read(elements.dtype, elements.count, offset))

    if math.prod(elements.shape) < LARGE_ELEMENTS:
        return read()
    return Recipe(shape=elements.shape, dtype=elements.held, make=read)


def _size_error(owner: str, shape: tuple[int, ...], found: float) -> PowerlabError:
    return PowerlabError(f"{owner} has shape {shape} but holds {found:g} values; export or download the model again.")


def _typed(tensor: Tensor, dtype: np.dtype[Any]) -> Array:
    if tensor.data_type == FLOAT:
        return np.frombuffer(tensor.float_data, dtype) if tensor.float_data else np.zeros(0, dtype)
    if tensor.data_type == DOUBLE:
        return np.frombuffer(tensor.double_data, dtype) if tensor.double_data else np.zeros(0, dtype)
    numbers = tensor.int64_data if dtype.itemsize == 8 else tensor.int32_data
    values = np.frombuffer(numbers, np.int64) if numbers else np.zeros(0, np.int64)
    if dtype == np.float16:  # stored as the bits of each half float
        return values.astype(np.uint16).view(np.float16)
    return values.astype(dtype)


def _external(tensor: Tensor, elements: _Elements, folder: Path | None, owner: str) -> tuple[DataFile, int]:
    """Return the file of external data, which must lie inside ``folder``, and where it begins there.

    Source: https://onnx.ai/onnx/repo-docs/ExternalData.html.
    """
    entries = {entry.key: entry.value for entry in tensor.external_data}
    location = entries.get("location", "")
    if folder is None or not location or "\0" in location:
        raise PowerlabError(f"{owner} keeps its data in another file, but names none; export the model again.")
    path = _beside(folder, location, owner)
    offset, length = (_whole(entries.get(key, usual), key, owner) for key, usual in (("offset", "0"), ("length", "-1")))
    try:
        size = path.stat().st_size if path.is_file() else -1
    except OSError:
        size = -1
    if size < 0:
        raise PowerlabError(f"{owner} keeps its data in {quoted(location)}, which is missing beside the model.")
    size_bytes, item = elements.count * elements.dtype.itemsize, elements.dtype.itemsize
    if offset < 0 or offset + size_bytes > size:
        raise PowerlabError(f"{owner} reaches past the end of {quoted(location)}; export or download the model again.")
    if "length" in entries and length != size_bytes:
        raise _size_error(owner, tuple(tensor.dims), length / item)
    return DataFile.at(path), offset


def _beside(folder: Path, location: str, owner: str) -> Path:
    """Return where a data file lies, links followed; it must be inside ``folder``."""
    try:
        path = (folder / location).resolve()
        inside = path.is_relative_to(folder.resolve())
    except (OSError, RuntimeError):  # a name that is too long, links that go round in a circle
        raise PowerlabError(
            f"{owner} keeps its data in {quoted(location)}, which is missing beside the model."
        ) from None
    if not inside:
        raise PowerlabError(
            f"{owner} keeps its data in {quoted(location)}, outside the model's folder, which is refused; "
            "put the data file beside the model."
        )
    return path


def _whole(text: str, key: str, owner: str) -> int:
    if not re.fullmatch(r"-?[0-9]{1,19}", text):
        raise PowerlabError(f"{owner} has the {key} {quoted(text)}, which is not an integer; export the model again.")
    return int(text)
