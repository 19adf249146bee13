"""Chooses what a sweep records from what a device offers."""

from __future__ import annotations

from powerlab.domain.device import Capabilities
from powerlab.domain.errors import PowerlabError
from powerlab.domain.power import Availability
from powerlab.domain.quantity import common_provenance
from powerlab.measure.record import Meter
from powerlab.sysroot import Sysroot


def choose_meter(sysroot: Sysroot, capabilities: Capabilities, sample_period_s: float) -> Meter:
    """Return the meter that records the rails of the device's total; without a total it records nothing.

    Raises:
        PowerlabError: the total names a rail that is not there, or adds up rails of different provenance.
    """
    offered = {
        rail.key: rail
        for source in capabilities.sources
        if source.availability is Availability.AVAILABLE
        for rail in source.rails
    }
    keys = () if capabilities.total is None else capabilities.total.rails
    missing = [key for key in keys if key not in offered]
    if missing:
        raise PowerlabError(
            f"the board's power is the sum of {', '.join(keys)}, but {', '.join(missing)} cannot be read; "
            "`powerlab doctor` says what to do about it."
        )
    rails = tuple(offered[key] for key in keys)
    if rails:
        common_provenance(rail.provenance for rail in rails)
    return Meter(sysroot=sysroot, total=capabilities.total, rails=rails, sample_period_s=sample_period_s)
