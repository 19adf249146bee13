"""The faults a simulated board can have. A fault is one module in this package and one line here."""

from __future__ import annotations

from collections.abc import Mapping

from powerlab.boards.simulator.faults.base import Fault
from powerlab.boards.simulator.faults.clock_jump import ClockJump
from powerlab.boards.simulator.faults.counter_wrap import CounterWrap
from powerlab.boards.simulator.faults.dead_sensor import DeadSensor
from powerlab.boards.simulator.faults.enodata import Enodata
from powerlab.boards.simulator.faults.mode_change import ModeChange
from powerlab.boards.simulator.faults.nc_rail import NcRail
from powerlab.boards.simulator.faults.over_current import OverCurrent
from powerlab.boards.simulator.faults.reboot_prompt import RebootPrompt
from powerlab.boards.simulator.faults.stale import Stale
from powerlab.boards.simulator.faults.unplugged import Unplugged

_ALL: tuple[type[Fault], ...] = (
    NcRail,
    Enodata,
    Stale,
    CounterWrap,
    DeadSensor,
    RebootPrompt,
    OverCurrent,
    ModeChange,
    ClockJump,
    Unplugged,
)
FAULTS: Mapping[str, type[Fault]] = {fault.name: fault for fault in _ALL}
"""By name, in the order in which they are listed."""
