"""NVIDIA's program ``tegrastats``, which prints what the board's sensor files hold."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import resources

from powerlab.boards.simulator.parts.base import Part


class TegrastatsProgram(Part):
    """Table: empty. The form of its lines follows the JetPack."""

    def programs(self) -> Iterator[tuple[str, str]]:
        """Yield the program."""
        source = resources.files("powerlab.boards.simulator") / "tegrastats_program.py"
        yield "/usr/bin/tegrastats", source.read_text(encoding="utf-8")
