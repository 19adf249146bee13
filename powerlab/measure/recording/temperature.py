"""Temperatures of a device's thermal zones, sampled in a thread.

with Thermometer(sysroot) as thermometer:
    ...                                 # the work
    traces = thermometer.finish()       # one a zone, in °C

A machine without zones, as most virtual ones are, has no temperature, and gives no trace.
"""

from __future__ import annotations

from powerlab.domain.power import RailQuantity
from powerlab.measure.recording.slow_samples import SlowSamples, beside_rail
from powerlab.sysroot import Sysroot
from powerlab.throttling.zones import Zones

SOURCE = "thermal"
READ_PERIOD_S = 1.0
"""Heat sinks take seconds to minutes, and on some boards reading a zone takes a millisecond."""


class Thermometer(SlowSamples):
    """Reads every zone on entering, once a period, and on ``finish``."""

    def __init__(self, sysroot: Sysroot, period_s: float = READ_PERIOD_S) -> None:
        zones = Zones(sysroot)
        rails = {name: beside_rail(sysroot, SOURCE, name, RailQuantity.TEMPERATURE) for name in zones.names}
        super().__init__(rails, zones.read, period_s, "powerlab-thermometer")
