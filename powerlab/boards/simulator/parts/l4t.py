"""NVIDIA's Linux for Tegra, by its release file."""

from __future__ import annotations

from collections.abc import Mapping

from powerlab.boards.simulator import layout
from powerlab.boards.simulator.parts.base import Files, Part


class L4t(Part):
    """Table: ``release``, such as ``35.4.1``; one for each JetPack where there are several."""

    def files(self, idle_w: Mapping[str, float]) -> Files:  # noqa: ARG002
        """Yield ``/etc/nv_tegra_release``."""
        major, _, revision = layout.variant_value(self.table["release"], self.variant).partition(".")
        head = f"# R{major} (release), REVISION: {revision}, GCID: 0, BOARD: simulated, EABI: aarch64"
        yield "/etc/nv_tegra_release", head
