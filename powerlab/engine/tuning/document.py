"""Files of measured choices: read and written whole; a damaged one is moved aside and said so."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Protocol, TypeVar

import msgspec

from powerlab.atomic_file import write_whole
from powerlab.domain.errors import PowerlabError

_ASIDE = ".damaged"


class _Versioned(Protocol):
    @property
    def version(self) -> int: ...


Document = TypeVar("Document", bound=_Versioned)


def read_document(path: Path, empty: Document) -> Document:
    """Return what a file holds, of the type and version of ``empty``; that itself where there is no file.

    Raises:
        PowerlabError: the file is damaged or another version's, and now lies aside; or it cannot be read.
    """
    try:
        found = msgspec.json.decode(path.read_bytes(), type=type(empty))
    except FileNotFoundError:
        return empty
    except OSError as error:
        raise PowerlabError(
            f"the engine's tuning {path} cannot be read ({error.strerror}); check its permissions."
        ) from None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise _set_aside(path) from None
    if found.version != empty.version:
        raise _set_aside(path)
    return found


def keep_document(path: Path, document: object) -> None:
    """Write the whole of a document or nothing.

    Raises:
        PowerlabError: the file cannot be written.
    """
    try:
        write_whole(path, msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n")
    except OSError as error:
        raise PowerlabError(
            f"what was tuned cannot be written to {path.parent} ({error.strerror}); free some space there, or name a "
            "writable place in POWERLAB_STATE_DIR."
        ) from None


def _set_aside(path: Path) -> PowerlabError:
    """Move a file that cannot be used out of the way, and return what to say about it."""
    aside = path.with_name(path.name + _ASIDE)
    try:
        os.replace(path, aside)
    except OSError as error:
        return PowerlabError(
            f"the engine's tuning {path} is damaged or another version's, and cannot be moved ({error.strerror}); "
            "remove it."
        )
    return PowerlabError(
        f"the engine's tuning {path} was damaged or another version's and now lies at {aside.name}; try again, or make "
        "a new one with `powerlab engine tune`."
    )
