"""Fixture trees for the watches: files as the kernel shows them, and how to change them while a watch looks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from powerlab.sysroot import Sysroot

Files = Mapping[str, object]
WriteTree = Callable[[Files], Sysroot]


@pytest.fixture
def tree(tmp_path: Path) -> WriteTree:
    """Return a function that writes files, or writes them anew, and returns their sysroot.

    ``None`` makes a path a directory, which no user, not even root, can read as a file.
    """

    def write(files: Files) -> Sysroot:
        sysroot = Sysroot(tmp_path)
        for name, text in files.items():
            path = sysroot.path(name)
            path.parent.mkdir(parents=True, exist_ok=True)
            if text is None:
                path.mkdir()
            elif isinstance(text, bytes):
                path.write_bytes(text)
            else:
                path.write_text(f"{text}\n")
        return sysroot

    return write


@pytest.fixture
def deny(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Return a function that makes files with this ending unreadable; root's own rights would let the tests through."""
    honest = Sysroot.read

    def install(ending: str) -> None:
        def read(self: Sysroot, path: str) -> str:
            if path.endswith(ending):
                raise PermissionError(13, "Permission denied", path)
            return honest(self, path)

        monkeypatch.setattr(Sysroot, "read", read)

    return install
