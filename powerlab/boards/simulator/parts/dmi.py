"""What the firmware says about the machine (kernel, ABI/testing/sysfs-class-dmi): maker, product, board."""

from __future__ import annotations

from collections.abc import Mapping

from powerlab.boards.simulator.parts.base import Files, Part


class Dmi(Part):
    """Table: the files under ``/sys/class/dmi/id``, by name."""

    def files(self, idle_w: Mapping[str, float]) -> Files:  # noqa: ARG002
        """Yield them."""
        for name, text in self.table.items():
            yield f"/sys/class/dmi/id/{name}", str(text)
