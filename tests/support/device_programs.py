"""Programs of a device, written into a directory that stands for its root."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

from powerlab.sysroot import Sysroot


def write_program(sysroot: Sysroot, path: str, source: str) -> Path:
    """Write an executable of Python source and return where it lies."""
    file = sysroot.path(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"#!{sys.executable} -IS\n{textwrap.dedent(source)}", encoding="utf-8")
    file.chmod(0o755)
    return file
