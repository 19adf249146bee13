"""NVIDIA's power modes: the table in ``/etc/nvpmodel.conf``, the state that survives a boot, and the program."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import resources

from powerlab.boards.simulator import layout
from powerlab.boards.simulator.nvpmodel_conf import render_conf
from powerlab.boards.simulator.parts.base import Files, Part
from powerlab.boards.simulator.start import modes_of, start_mode


class NvpmodelProgram(Part):
    """Table: ``start_mode``, the number of the mode the board boots in, and ``default_mode``, that of a new device."""

    def files(self, idle_w: Mapping[str, float]) -> Files:  # noqa: ARG002
        """Yield the table of modes and the state."""
        simulation = layout.simulation_of(self.board.name)
        modes = modes_of(self.board, self.jetpack)
        default = layout.variant_value(self.table["default_mode"], self.variant)
        yield "/etc/nvpmodel.conf", render_conf(simulation, modes, default, self.variant)
        yield "/var/lib/nvpmodel/status", f"pmode:{start_mode(self.board, simulation, self.jetpack).id:04d}"

    def programs(self) -> Iterator[tuple[str, str]]:
        """Yield the program."""
        source = resources.files("powerlab.boards.simulator") / "nvpmodel_program.py"
        yield "/usr/sbin/nvpmodel", source.read_text(encoding="utf-8")
