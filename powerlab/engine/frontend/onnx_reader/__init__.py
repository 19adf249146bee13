"""ONNX files to models, without the onnx and protobuf packages: wire format, schema, tensors, nodes.

graph = read_onnx(Path("model.onnx"), shapes={"x": (1, 3, 224, 224)})
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from powerlab.domain.errors import PowerlabError
from powerlab.engine.frontend.onnx_reader.build import parse
from powerlab.engine.frontend.onnx_reader.file import DataFile
from powerlab.engine.ir.graph import Graph
from powerlab.engine.ir.open_model import OpenModel

MAX_FILE_BYTES = 2**31
"""A protobuf message cannot be larger; bigger weights live in external data."""

_MAPPED_BYTES = 2**16
"""A file from this size on is not held in memory: its large constants are read when they are asked for."""


def read_onnx(
    path: Path,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    batch_size: int | None = None,
    *,
    unrolled: bool = True,
) -> Graph:
    """Return the graph of an ONNX file; the arguments are those of ``load_graph``.

    Raises:
        NeedsRunError: the file leaves the shape of an input open, or a value that only a run gives decides one.
        PowerlabError: the file is missing, no ONNX, or uses what the engine does not have; names the file.
    """
    model = read_open(path, shapes, batch_size)
    with _named(path):
        return model.graph(unrolled=unrolled)


def read_open(
    path: Path, shapes: Mapping[str, tuple[int, ...]] | None = None, batch_size: int | None = None
) -> OpenModel:
    """Return the model in an ONNX file, whose inputs may have open sizes.

    Raises:
        PowerlabError: the file is missing, no ONNX, or uses what the engine does not have; names the file.
    """
    try:
        size = path.stat().st_size if path.is_file() else None
        if size is None:
            raise PowerlabError(f"{path} is not a model file; give the path of an ONNX file.")
        if size > MAX_FILE_BYTES:
            raise PowerlabError(f"{path} is larger than an ONNX file can be (2 GiB); export it with external data.")
        file, data = (None, path.read_bytes()) if size < _MAPPED_BYTES else DataFile.mapped(path)
    except OSError as error:
        raise PowerlabError(f"{path} cannot be read: {error.strerror or error}.") from None
    with _named(path):
        return parse(data, shapes or {}, batch_size, path.parent, file)


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Let errors name the file."""
    try:
        yield
    except PowerlabError as error:
        raise error.named(f"{path} cannot be loaded: ") from None
    except MemoryError:
        raise PowerlabError(f"{path} cannot be loaded: it does not fit into memory; give a smaller model.") from None
