"""Files that a command writes when it has measured."""

from __future__ import annotations

from pathlib import Path

from powerlab.domain.errors import PowerlabError


def writable(option: str, file: str | None) -> Path | None:
    """Return the path that an option names, None where it names none; refuse it now rather than after minutes.

    Raises:
        PowerlabError: it cannot be written.
    """
    if file is None:
        return None
    path = Path(file)
    try:
        path.open("ab").close()
    except OSError as error:
        raise PowerlabError(
            f"{option} {file} cannot be written ({error.strerror}); give a file in an existing folder of yours."
        ) from error
    return path
