"""Output files, checked before a measurement starts."""

from __future__ import annotations

from pathlib import Path

from powerlab.domain.errors import PowerlabError


def writable(option: str, file: str | None) -> Path | None:
    """Return the path that an option names, or None; fail now rather than after minutes of measuring.

    Raises:
        PowerlabError: the file cannot be written.
    """
    if file is None:
        return None
    path = Path(file)
    try:
        path.open("ab").close()
    except OSError as error:
        raise PowerlabError(
            f"cannot write {option} {file} ({error.strerror}); choose a file in an existing, writable directory."
        ) from error
    return path
