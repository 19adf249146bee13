"""An external meter, which sees the whole device: configured by whoever connected it (:mod:`.config`).

It speaks the line protocol (:mod:`.line_protocol`) over a serial line or TCP, or is an analyser behind SPEC's PTDaemon
(:mod:`.ptdaemon`). Readings are stamped as they arrive, which is up to one update later than what they average.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from powerlab.domain.errors import PowerlabError
from powerlab.domain.power import Availability, Rail, RailQuantity, SourceProbe
from powerlab.power.base import Channel, PolledChannel
from powerlab.power.sampling.stream import Feed, Stream
from powerlab.power.sources.meter.config import CONFIG, VARIABLE, MeterConfig, read_config
from powerlab.power.sources.meter.connections import line_feed
from powerlab.power.sources.meter.line_protocol import RAIL
from powerlab.power.sources.meter.ptdaemon import PtdFeed
from powerlab.power.sources.scan import sensor_provenance
from powerlab.sysroot import Sysroot

RECONNECT_S = 10.0
"""How long a recording tries to reach a meter that answered when it was probed."""
_PATIENCE_S = 5.0
_SILENT_UPDATES = 4
_SHORTEST_SILENCE_S = 2.0

_ABSENT = f"no external meter is configured: neither {CONFIG} nor {VARIABLE}"
_DENIED_REMEDY = (
    "add the user to the group that owns the serial line: `sudo usermod -aG dialout $USER`, then log in again"
)


class Meter:
    """One rail, ``meter:wall``."""

    name = "meter"
    root_files: tuple[str, ...] = ()

    def probe(self, sysroot: Sysroot) -> SourceProbe:
        """Say what is configured and whether it sends: the meter is connected and one reading awaited."""
        try:
            config = read_config(sysroot)
        except PowerlabError as error:
            return self._answer(Availability.BROKEN, str(error).rstrip("."), "fix the file, or remove it")
        if config is None:
            return self._answer(Availability.ABSENT, _ABSENT)
        try:
            with meter_stream(sysroot, config, reconnect_s=0.0).session():
                pass
        except PermissionError:
            return self._answer(Availability.DENIED, f"this user may not open {config.address.device}", _DENIED_REMEDY)
        except OSError as error:
            remedy = "look at its cable, its power and whether another program reads it; then the address in the file"
            return self._answer(Availability.BROKEN, f"{config.address}: {error.strerror or error}", remedy)
        detail = f"{config.address}, which covers {config.covers}"
        rail = _rail(sysroot, config)
        return SourceProbe(source=self.name, availability=Availability.AVAILABLE, detail=detail, rails=(rail,))

    def channels(self, sysroot: Sysroot) -> Sequence[Channel]:
        """Return how to read the meter; it is connected when the recording starts."""
        try:
            config = read_config(sysroot)
        except PowerlabError:
            return ()  # probe() says what is wrong
        if config is None:
            return ()
        stream = meter_stream(sysroot, config)
        read = partial(stream.read, RAIL)
        return (PolledChannel(rail=_rail(sysroot, config), read=read, session=stream.session),)

    def _answer(self, state: Availability, detail: str, remedy: str = "") -> SourceProbe:
        return SourceProbe(source=self.name, availability=state, detail=detail, remedy=remedy)


def meter_stream(sysroot: Sysroot, config: MeterConfig, *, reconnect_s: float = RECONNECT_S) -> Stream:
    """Return a stream of a meter's readings."""

    def connect() -> Feed:
        return PtdFeed(config) if config.address.kind == "ptd" else line_feed(sysroot, config)

    return Stream(
        connect,
        Meter.name,
        reconnect_s=reconnect_s,
        patience_s=_PATIENCE_S + 2 * config.update_period_s,
        silence_s=max(_SHORTEST_SILENCE_S, _SILENT_UPDATES * config.update_period_s),
    )


def _rail(sysroot: Sysroot, config: MeterConfig) -> Rail:
    return Rail(
        source=Meter.name,
        name=RAIL,
        quantity=RailQuantity.POWER,
        resolution=config.resolution_w,
        relative_error=config.relative_error,
        update_period_s=config.update_period_s,
        provenance=sensor_provenance(sysroot),
    )
