"""Reading and writing NumPy .npz files for the command line: one sentence where a file is wrong, whole files only."""

from __future__ import annotations

import os
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from powerlab.domain.errors import PowerlabError


def read_npz(path: Path) -> dict[str, NDArray[Any]]:
    """Return the arrays in ``path`` by name.

    Raises:
        PowerlabError: the file is missing, no .npz of plain arrays, or damaged.
    """
    try:
        with path.open("rb") as stream:  # of its own: numpy leaves a damaged file open
            archive = np.load(stream, allow_pickle=False)
            if isinstance(archive, np.ndarray):
                raise PowerlabError(f"{path} holds one nameless array (.npy); save it with numpy.savez under a name.")
            with archive:
                return {name: archive[name] for name in archive.files}
    except PowerlabError:
        raise
    except FileNotFoundError:
        raise PowerlabError(f"{path} does not exist; give a NumPy .npz file made by numpy.savez.") from None
    except OSError as error:
        raise PowerlabError(f"{path} cannot be read: {error.strerror or error}; give a NumPy .npz file.") from None
    except Exception as error:
        # A damaged member makes zipfile, zlib or numpy's header parser raise almost anything (TokenError, KeyError...).
        raise PowerlabError(
            f"{path} is not a readable .npz file of plain arrays ({type(error).__name__}); make it with numpy.savez."
        ) from error


def check_writable(path: Path) -> None:
    """Raise PowerlabError where ``path`` cannot be written, before any work is done for it."""
    if path.is_dir() or not path.parent.is_dir():
        raise PowerlabError(
            f"{path} cannot be written: its folder does not exist, or it is a folder itself; give another path."
        )
    if not os.access(path.parent, os.W_OK):
        raise PowerlabError(f"{path} cannot be written: you may not write in {path.parent}; give another path.")


def write_npz(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write ``arrays`` to ``path``, whole or not at all: a temporary file beside it is renamed at the end.

    ``numpy.savez`` is not used because it cannot store an array named ``file``.

    Raises:
        PowerlabError: the file cannot be written.
    """
    try:
        _write_beside(path, arrays)
    except OSError as error:
        raise PowerlabError(f"{path} cannot be written: {error.strerror or error}; give another path.") from None


def _write_beside(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as stream, zipfile.ZipFile(stream, "w") as archive:
            for name, array in arrays.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, array, allow_pickle=False)
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
