"""Fixture trees for the watches: files as the kernel shows them, and how to change them while a watch looks."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from powerlab.sysroot import Sysroot
from trees import Files, write_tree

WriteTree = Callable[[Files], Sysroot]


@pytest.fixture
def tree(tmp_path: Path) -> WriteTree:
    """Return a function that writes files, or writes them anew, and returns their sysroot."""
    return partial(write_tree, tmp_path)


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
