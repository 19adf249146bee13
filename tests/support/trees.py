"""Small pictures of a device's file tree, written where a test wants them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from powerlab.sysroot import Sysroot

Files = Mapping[str, object]
"""A path and its text or bytes; None makes it a directory, which no user, not even root, can read as a file."""


def write_tree(base: Path, files: Files) -> Sysroot:
    """Write files, or write them anew, and return the sysroot on them."""
    sysroot = Sysroot(base)
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
