"""A Jetson's GPU clock (kernel, devfreq), its power gating and its load."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from powerlab.boards.simulator import layout
from powerlab.boards.simulator.parts.base import Files, Moment, Part
from powerlab.boards.simulator.start import nearest_not_above, start_mode
from powerlab.boards.simulator.state import gpu_directory


class GpuDevfreq(Part):
    """Table: ``device`` below ``/sys/devices`` (perhaps one a JetPack), ``freqs_hz``, ``min_hz``, ``governor``."""

    @property
    def device(self) -> str:
        """The GPU's directory in sysfs."""
        return f"/sys/devices/{layout.variant_value(self.table['device'], self.variant)}"

    @property
    def devfreq(self) -> str:
        """The directory of the GPU's clock."""
        return gpu_directory(self.table, self.variant)

    def files(self, idle_w: Mapping[str, float]) -> Files:  # noqa: ARG002
        """Yield the files of the GPU."""
        clocks, low_hz = self.table["freqs_hz"], self.table["min_hz"]
        mode = start_mode(self.board, layout.simulation_of(self.board.name), self.jetpack)
        yield f"{self.device}/tpc_pg_mask", "0"
        yield f"{self.device}/power/control", "on"
        yield f"{self.device}/load", "0"
        yield f"{self.devfreq}/available_frequencies", " ".join(map(str, clocks))
        yield f"{self.devfreq}/governor", self.table["governor"]
        yield f"{self.devfreq}/cur_freq", str(low_hz)
        yield f"{self.devfreq}/min_freq", str(low_hz)
        yield f"{self.devfreq}/max_freq", str(nearest_not_above(clocks, mode.gpu_hz))

    def links(self) -> Iterator[tuple[str, str]]:
        """Yield the names under which programs look for the GPU."""
        below = self.device.removeprefix("/sys/devices/")
        yield "/sys/devices/gpu.0", below
        yield f"/sys/class/devfreq/{below.rpartition('/')[2]}", f"../..{self.devfreq.removeprefix('/sys')}"

    def tick(self, moment: Moment) -> None:
        """Show the clock: nothing computes on the GPU, so it is the lowest that is allowed."""
        if moment.looked:
            low_hz = layout.line_of(self.sysroot, f"{self.devfreq}/min_freq")
            if low_hz:  # it is empty while somebody writes it
                layout.put(self.sysroot, f"{self.devfreq}/cur_freq", low_hz)
