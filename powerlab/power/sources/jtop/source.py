"""Rails of a Jetson from the jtop service of jetson-stats, if it runs.

It cross-checks the rails' files and stands in where this user may not read them. Needs the optional package
``powerlab[jtop]`` (jetson-stats, AGPL-3.0), whose version must match the service's in major and minor. The present
power of a rail is used and never jtop's ``avg``, which is (new + old) / 2. :mod:`powerlab.power.sources.jtop.client`
talks to
the service, in a process of its own.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated

import msgspec

from powerlab.domain.power import Availability, Rail, RailQuantity, SourceProbe
from powerlab.power.base import Channel, PolledChannel
from powerlab.power.sampling.line_feed import LineFeed, program_feed
from powerlab.power.sampling.stream import Stream
from powerlab.power.sources.ina3221 import Ina3221
from powerlab.power.sources.scan import sensor_provenance
from powerlab.sysroot import Sysroot

SOCKET = "/run/jtop.sock"
PACKAGE = "jtop"
_INTERVAL_S = 0.1
_PATIENCE_S = 15.0
_SILENCE_S = 5.0
_SMALLEST_SHUNT_OHM = 0.002
_SHUNT_STEP_V = 40e-6
_RELATIVE_ERROR = 0.015
_OFFSET_STEPS = 2.0
"""As for the same sensors read from their files: see :mod:`powerlab.power.sources.ina3221`."""

_PACKAGE_REMEDY = (
    "only for comparison: `pip install 'powerlab[jtop]'`, then the release of jetson-stats whose major.minor version "
    "is the service's (`jtop --version` as the board's own Python has it)"
)
_VERSION_REMEDY = (
    "install the service's version beside powerlab: `pip install 'jetson-stats==MAJOR.MINOR.*'` with the service's "
    "major and minor version; client and service must match in both"
)
_DENIED_REMEDY = "add the user to the group jtop and log in again: `sudo usermod -aG jtop $USER`"
_SERVICE_REMEDY = "look at the service: `systemctl status jtop`; without it the rails' files are used"


_Milli = Annotated[int, msgspec.Meta(ge=-(2**31), lt=2**31)]


class _Figures(msgspec.Struct):
    power_mw: _Milli
    volt_mv: _Milli = 0


class _Message(msgspec.Struct):
    error: str = ""
    interval_s: float | None = None
    rails: dict[str, _Figures] = {}


@dataclass(slots=True)
class Told:
    """What the client's lines said.

    Attributes:
        interval_s: how often the service reads the rails; whoever connected first has chosen it.
        step_w: by rail, a bound of how finely its sensor steps, in W.
        error: why there are no rails; empty while there are.
    """

    interval_s: float = _INTERVAL_S
    step_w: dict[str, float] = field(default_factory=dict)
    error: str = ""

    def parse_line(self, text: str) -> Mapping[str, float]:
        """Return the power in W by rail.

        Raises:
            ValueError: the line has no readings.
        """
        try:
            message = msgspec.json.decode(text, type=_Message)
        except msgspec.MsgspecError as error:
            raise ValueError(f"not a line of the client: {error}") from None
        self.error = message.error
        if message.interval_s is not None:
            self.interval_s = max(message.interval_s, 0.0)
        if not message.rails:
            raise ValueError(message.error or "no rails")
        for name, figures in message.rails.items():
            self.step_w[name] = _SHUNT_STEP_V / _SMALLEST_SHUNT_OHM * max(figures.volt_mv, 0) * 1e-3
        return {name: figures.power_mw * 1e-3 for name, figures in message.rails.items()}


class Jtop:
    """Runs the client while rails are recorded; offered where the rails' files cannot all be read."""

    name = "jtop"
    root_files: tuple[str, ...] = ()

    def probe(self, sysroot: Sysroot) -> SourceProbe:
        """Say what is there; the client is run once where its rails are wanted."""
        if not sysroot.path(SOCKET).exists():
            return self._answer(Availability.ABSENT, f"the jtop service does not run: there is no {SOCKET}")
        if importlib.util.find_spec(PACKAGE) is None:
            detail = "the jtop service runs, but the Python package jetson-stats is not installed beside powerlab"
            return self._answer(Availability.ABSENT, detail, _PACKAGE_REMEDY)
        files = Ina3221().probe(sysroot)
        if files.availability is Availability.AVAILABLE and not files.remedy:
            return self._answer(Availability.ABSENT, "found, but not needed: ina3221 reads the same rails from files")
        told = Told()
        channels = _channels(sysroot, told)
        if not channels:
            return self._refused(told.error or "the service names no rails")
        rails = tuple(channel.rail for channel in channels)
        detail = f"{len(rails)} rails, which the service reads every {told.interval_s:g} s"
        return SourceProbe(source=self.name, availability=Availability.AVAILABLE, detail=detail, rails=rails)

    def channels(self, sysroot: Sysroot) -> Sequence[Channel]:
        """Return how to read each rail that the service names."""
        if not sysroot.path(SOCKET).exists() or importlib.util.find_spec(PACKAGE) is None:
            return ()
        return _channels(sysroot, Told())

    def _answer(self, state: Availability, detail: str, remedy: str = "") -> SourceProbe:
        return SourceProbe(source=self.name, availability=state, detail=detail, remedy=remedy)

    def _refused(self, error: str) -> SourceProbe:
        if "Mismatch version" in error:
            return self._answer(Availability.BROKEN, f"client and service do not match: {error}", _VERSION_REMEDY)
        if "can't access" in error:
            return self._answer(Availability.DENIED, "the jtop service runs, but this user may not ask", _DENIED_REMEDY)
        return self._answer(Availability.BROKEN, f"the jtop service gives no rails: {error}", _SERVICE_REMEDY)


def jtop_stream(sysroot: Sysroot, told: Told) -> Stream:
    """Return a stream of what the service says."""

    def connect() -> LineFeed:
        socket = str(sysroot.path(SOCKET))
        command = (sys.executable, "-m", "powerlab.power.sources.jtop.client", socket, str(_INTERVAL_S))
        return program_feed(command, told.parse_line)

    return Stream(connect, Jtop.name, patience_s=_PATIENCE_S, silence_s=_SILENCE_S)


def _channels(sysroot: Sysroot, told: Told) -> tuple[PolledChannel, ...]:
    stream = jtop_stream(sysroot, told)
    try:
        with stream.session():
            names = stream.rails()
    except OSError as error:
        told.error = told.error or str(error)
        return ()
    return tuple(
        PolledChannel(rail=_rail(sysroot, name, told), read=partial(stream.read, name), session=stream.session)
        for name in names
    )


def _rail(sysroot: Sysroot, name: str, told: Told) -> Rail:
    step_w = told.step_w.get(name, 0.0)
    return Rail(
        source=Jtop.name,
        name=name,
        quantity=RailQuantity.POWER,
        resolution=step_w,
        relative_error=_RELATIVE_ERROR,
        update_period_s=told.interval_s,
        provenance=sensor_provenance(sysroot),
        offset=_OFFSET_STEPS * step_w,
    )
