"""Estimated power from processor utilisation, for hosts where nothing can be measured.

The model: power = idle + (peak - idle) x utilisation, as an energy counter that is read every 0.1 s, so that nothing
falls between two samples:

    energy(t) = idle x t + (peak - idle) x busy processor seconds / processors

with idle and peak by rule of thumb from the count of logical processors (:data:`RULES`), and utilisation from
``/proc/stat`` (Documentation/filesystems/proc.rst). The linear form is Fan, Weber and Barroso's (ISCA 2007). It knows
nothing of clocks, instruction mix or graphics: hence :data:`RELATIVE_ERROR`, and the word *estimated* wherever it goes.
"""

from __future__ import annotations

import os
import platform
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from powerlab.domain.power import Availability, Rail, RailQuantity, SourceProbe
from powerlab.domain.quantity import Provenance
from powerlab.power.base import Channel, PolledChannel
from powerlab.sysroot import Sysroot

RELATIVE_ERROR = 0.6
"""The true power is thought to lie within 60 % of the figure, up or down."""

UPDATE_PERIOD_S = 0.1
"""How often the counter is read. The kernel counts busy time in ticks of 10 ms, so a reading every tick would show each
processor as idle or busy; over 0.1 s one tick is 10 % of one processor. The default plan has room for 20 periods."""

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_IDLE_FIELDS = (3, 4)
_COUNTED_FIELDS = 7
"""user nice system idle iowait irq softirq; steal is other machines' work, and guest time is already inside user."""


@dataclass(frozen=True, slots=True)
class Rule:
    """Power in W of a machine with n logical processors: ``base + per_processor * n``, all idle and all busy."""

    idle_base_w: float
    idle_per_processor_w: float
    peak_base_w: float
    peak_per_processor_w: float

    def idle_w(self, processors: int) -> float:
        """Return the power with nothing to do."""
        return self.idle_base_w + self.idle_per_processor_w * processors

    def peak_w(self, processors: int) -> float:
        """Return the power with every processor busy."""
        return self.peak_base_w + self.peak_per_processor_w * processors


RULES = {"x86_64": Rule(2.0, 0.8, 5.0, 3.5), "aarch64": Rule(1.0, 0.3, 2.0, 2.0)}
"""By rule of thumb: a laptop of 8 threads 8 to 33 W, a server of 128 threads 104 to 453 W; an arm64 board of 4 cores
2 to 10 W, an arm64 server of 80 cores 25 to 162 W. Processor and memory only."""


@dataclass(frozen=True, slots=True)
class ProcessorTime:
    """How many logical processors there are, and how many seconds they have been busy since boot, added up."""

    processors: int
    busy_s: float


def parse_proc_stat(text: str, ticks_per_s: int) -> ProcessorTime:
    """Read the ``cpu`` lines of ``/proc/stat``.

    Raises:
        ValueError: the lines are missing or malformed.
    """
    total = re.search(r"^cpu +([0-9 ]+)$", text, re.MULTILINE)
    processors = len(re.findall(r"^cpu[0-9]+ ", text, re.MULTILINE))
    fields = [int(field) for field in total[1].split()[:_COUNTED_FIELDS]] if total else []
    if len(fields) <= max(_IDLE_FIELDS) or processors == 0:
        raise ValueError("no processor times in /proc/stat")
    busy = sum(ticks for index, ticks in enumerate(fields) if index not in _IDLE_FIELDS)
    return ProcessorTime(processors, busy / ticks_per_s)


class Estimate:
    """One rail, ``estimate:host``. The registry offers it only where no sensor gives a total."""

    name = "estimate"
    root_files: tuple[str, ...] = ()

    def probe(self, sysroot: Sysroot) -> SourceProbe:
        """Say whether ``/proc/stat`` can be read, and what the model makes of this machine."""
        try:
            found = parse_proc_stat(sysroot.read("/proc/stat"), _TICKS_PER_S)
        except (OSError, ValueError) as error:
            detail = f"no estimate: {error}"
            return SourceProbe(source=self.name, availability=Availability.ABSENT, detail=detail)
        rule = _rule()
        count = found.processors
        detail = (
            f"a guess, not a measurement: {rule.idle_w(count):.0f} W idle to {rule.peak_w(count):.0f} W busy by rule "
            f"of thumb for {count} processors, times their utilisation; wrong by up to {RELATIVE_ERROR:.0%}"
        )
        rail = _rail(sysroot, count)
        return SourceProbe(source=self.name, availability=Availability.AVAILABLE, detail=detail, rails=(rail,))

    def channels(self, sysroot: Sysroot) -> Sequence[Channel]:
        """Return how to read the estimate."""
        try:
            count = parse_proc_stat(sysroot.read("/proc/stat"), _TICKS_PER_S).processors
        except (OSError, ValueError):
            return ()
        return (PolledChannel(rail=_rail(sysroot, count), read=partial(_energy_j, sysroot, _rule())),)


def _rule() -> Rule:
    """Return the rule of this machine's architecture; x86-64 has the larger figures and stands in for all others."""
    return RULES.get(platform.machine(), RULES["x86_64"])


def _rail(sysroot: Sysroot, processors: int) -> Rail:
    rule = _rule()
    dynamic_w = rule.peak_w(processors) - rule.idle_w(processors)
    return Rail(
        source=Estimate.name,
        name="host",
        quantity=RailQuantity.ENERGY,
        resolution=dynamic_w / processors / _TICKS_PER_S,
        relative_error=RELATIVE_ERROR,
        update_period_s=UPDATE_PERIOD_S,
        provenance=Provenance.SIMULATED if sysroot.simulated else Provenance.ESTIMATED,
    )


def estimated_energy_j(rule: Rule, uptime_s: float, found: ProcessorTime) -> float:
    """Return the model's energy since boot in J."""
    idle_w, peak_w = rule.idle_w(found.processors), rule.peak_w(found.processors)
    return idle_w * uptime_s + (peak_w - idle_w) * found.busy_s / found.processors


def _energy_j(sysroot: Sysroot, rule: Rule) -> float:
    try:
        found = parse_proc_stat(sysroot.read("/proc/stat"), _TICKS_PER_S)
    except ValueError as error:
        raise OSError(str(error)) from error
    return estimated_energy_j(rule, time.monotonic(), found)
