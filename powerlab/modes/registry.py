"""The knobs powerlab can turn. A knob is one module in this package and one line here."""

from __future__ import annotations

from powerlab.modes.base import Knob
from powerlab.modes.cpufreq import CpuFreq
from powerlab.modes.nvpmodel import Nvpmodel

KNOBS: tuple[Knob, ...] = (
    Nvpmodel(),
    CpuFreq(),
)
"""In the order in which settings are written back: nvpmodel resets what cpufreq sets, so it comes first."""
