"""NVIDIA's ``jetson_clocks``, which pins every clock to its upper limit."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import resources

from powerlab.boards.simulator.parts.base import Part


class JetsonClocks(Part):
    """Table: nothing to say."""

    def programs(self) -> Iterator[tuple[str, str]]:
        """Yield the program."""
        source = resources.files("powerlab.boards.simulator") / "jetson_clocks_program.py"
        yield "/usr/bin/jetson_clocks", source.read_text(encoding="utf-8")
