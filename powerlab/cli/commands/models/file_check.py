"""What is looked at in a file before it is sent."""

from __future__ import annotations

import mmap
import re
from pathlib import Path

from powerlab.domain.errors import PowerlabError
from powerlab.domain.model_name import check_name


def default_name(path: Path) -> str:
    """Return a name for a file: its own, without ``.onnx``, other characters turned into dashes."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", path.name.removesuffix(".onnx")).strip("-._")[:100]
    if not name:
        raise PowerlabError(f"{path} gives no name for the model; choose one with --name.")
    check_name(name)
    return name


def check_model_file(path: Path) -> str | None:
    """Refuse what no device could load; return a remark on what some engine could not.

    Raises:
        PowerlabError: the file cannot be read, is no ONNX model, or keeps weights in other files.
    """
    from powerlab.engine.frontend.load import load_graph
    from powerlab.engine.frontend.onnx_reader.external import external_tensor
    from powerlab.engine.ir.graph import InRoundsError, NeedsRunError

    try:
        with path.open("rb") as file:
            elsewhere = external_tensor(memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)))
    except (OSError, ValueError) as error:  # ValueError: the file is empty
        raise PowerlabError(
            f"{path} cannot be read ({getattr(error, 'strerror', None) or error}); give the path of an ONNX file."
        ) from error
    except PowerlabError as error:
        raise PowerlabError(f"{path} cannot be uploaded: {error}") from error
    if elsewhere is not None:
        raise PowerlabError(
            f"{path} keeps weights such as {elsewhere!r} in another file; save it as one file first, for example with "
            "onnx.save(onnx.load(FILE), FILE, save_as_external_data=False)."
        )
    try:
        load_graph(path, batch_size=1, unrolled=False)
    except InRoundsError:
        return None
    except PowerlabError as error:
        if isinstance(error, NeedsRunError) and error.tensor is not None:
            return None  # a value decides a shape: planned while it runs
        return f"the engine builtin cannot run this model, others perhaps can: {error}"
    return None
