"""Choose what a sweep records from what a device offers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from powerlab.domain.device import Capabilities, Device
from powerlab.domain.errors import PowerlabError
from powerlab.domain.power import CARD_SOURCES, Availability, Rail
from powerlab.domain.quantity import common_provenance
from powerlab.domain.workload import Processor
from powerlab.measure.lag.calibration import fitting, kept, place, with_lags
from powerlab.measure.recording.rails import Meter
from powerlab.power.sampling.update_period import corrected, watch
from powerlab.power.total import total_of_plan
from powerlab.sysroot import Sysroot

LONGEST_WATCH_S = 2.0
SHORTEST_WATCH_S = 0.5


def choose_meter(
    sysroot: Sysroot,
    capabilities: Capabilities,
    sample_period_s: float,
    processors: Sequence[Processor] = (Processor.CPU,),
) -> Meter:
    """Return the meter that records the rails of the total; without a total it records nothing.

    That is the device's, but for a plan on graphics cards alone which the device's lacks: then it is the cards'.

    Raises:
        PowerlabError: the total names a rail that is not there, or adds up rails of different provenance.
    """
    offered = {
        rail.key: rail
        for source in capabilities.sources
        if source.availability is Availability.AVAILABLE
        for rail in source.rails
    }
    total = total_of_plan(capabilities.total, tuple(offered.values()), set(processors) == {Processor.GPU})
    keys = () if total is None else total.rails
    missing = [key for key in keys if key not in offered]
    if missing:
        raise PowerlabError(
            f"the board's power is the sum of {', '.join(keys)}, but {', '.join(missing)} cannot be read; "
            "`powerlab doctor` says what to do about it."
        )
    rails = tuple(offered[key] for key in keys)
    if rails:
        common_provenance(rail.provenance for rail in rails)
    return Meter(sysroot=sysroot, total=total, rails=rails, sample_period_s=sample_period_s)


def card_rails_beside(meter: Meter, capabilities: Capabilities) -> tuple[Rail, ...]:
    """Return the figures of graphics cards that the meter's total lacks: mostly the same power again."""
    own = {rail.key for rail in meter.rails}
    return tuple(
        rail
        for source in capabilities.sources
        if source.source in CARD_SOURCES and source.availability is Availability.AVAILABLE
        for rail in source.rails
        if rail.key not in own
    )


def watch_s(window_s: float) -> float:
    """Return for how long a sweep watches its sensors: a sensor too slow for that is too slow for its windows."""
    return min(LONGEST_WATCH_S, max(SHORTEST_WATCH_S, window_s))


def watched_meter(meter: Meter, duration_s: float) -> Meter:
    """Watch the rails of a meter, and return it with what was seen: periods that are longer than said, lively rails.

    Where a rail cannot be watched the meter stays as it is: the runs, which read the same rails, say what is wrong.
    """
    try:
        seen = watch(meter.sysroot, [rail.key for rail in meter.rails], duration_s)
    except PowerlabError:
        return meter
    return replace(
        meter,
        rails=tuple(corrected(watched) for watched in seen),
        lively={watched.rail.key: watched.changes_per_s for watched in seen if watched.lively},
    )


def calibrated_meter(meter: Meter, stated: Sequence[Rail], device: Device) -> Meter:
    """Return a meter with the lags that `powerlab calibrate` found on this device, where there are any.

    Args:
        meter: the watched meter.
        stated: its rails as their sources describe them.
        device: what the calibration must have been made for.

    Raises:
        PowerlabError: there is a calibration that cannot be read.
    """
    lags = fitting(kept(place(device, meter.sysroot)), device, stated)
    return replace(meter, rails=with_lags(meter.rails, lags)) if lags else meter
