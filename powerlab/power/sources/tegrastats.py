"""Rails of a Jetson from NVIDIA's ``tegrastats``, line by line.

It stands in where this user may not read the rails' files; its rails carry the board's own names. A rail is
``NAME now/average`` in mW, since JetPack 5 with the unit (``VDD_IN 4761mW/4777mW``); only the present value is used,
for the average began when the program did. Memory (``RAM 775/7620MB``), clocks, loads and temperatures
(``tj@49.062C``) are not rails. Source: NVIDIA Jetson Linux Developer Guide, "tegrastats Utility".
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial

from powerlab.domain.power import Availability, Rail, RailQuantity, SourceProbe
from powerlab.power.base import Channel, PolledChannel
from powerlab.power.sampling.line_feed import LineFeed, program_feed
from powerlab.power.sampling.stream import Stream
from powerlab.power.sources.ina3221 import Ina3221
from powerlab.power.sources.programs import find_program
from powerlab.power.sources.scan import sensor_provenance
from powerlab.sysroot import Sysroot

INTERVAL_MS = 100
_PATIENCE_S = 5.0
_SILENCE_S = 2.0
_MOST_WITHOUT_RAILS = 3

_DATE = re.compile(r"(\d{2}-\d{2}-\d{4} \d{2}:\d{2}:\d{2})\s+", re.ASCII)
_RAIL = re.compile(r"(?<!\S)([A-Za-z_][A-Za-z0-9_.]*) +(\d{1,7})(mW)?/\d{1,7}(?(3)mW)(?!\S)", re.ASCII)
_TEMPERATURE = re.compile(r"(?<!\S)([A-Za-z][\w-]*)@(-?\d{1,4}(?:\.\d{1,6})?)C(?!\S)", re.ASCII)
_DEAD_SENSOR_C = -256.0
_CONSTANT_SENSOR = "PMIC"

_STEP_W, _STEP_5V_W = 0.4, 0.1
"""The program does not say how finely the sensor behind it steps: a 40 µV step over 2 mΩ, the smallest shunt known,
on a supply of 20 V, or of 5 V where the names say so (the INA3221's datasheet, SBOS576)."""
_OF_5V_MODULES = "VDD_CPU_GPU_CV"
"""Only modules fed with 5 V have this rail: Xavier NX, Orin NX and Orin Nano."""
OFFSET_STEPS = 2.0
RELATIVE_ERROR = 0.015
"""As for the same sensors read from their files: see :mod:`powerlab.power.sources.ina3221`."""


@dataclass(frozen=True, slots=True)
class Line:
    """What one line says.

    Attributes:
        rails_w: present power in W by rail.
        temperatures_c: in degrees Celsius; dead sensors (-256) and the PMIC's, a constant, are left out.
        date: the wall clock's date at its head, None where it has none; whole seconds, in an unstated time zone.
    """

    rails_w: Mapping[str, float]
    temperatures_c: Mapping[str, float] = field(default_factory=dict)
    date: datetime | None = None


def parse_line(text: str) -> Line:
    """Parse a line of any release.

    Raises:
        ValueError: it is no line of tegrastats: it has neither rails nor ``RAM``.
    """
    date = None
    if match := _DATE.match(text):
        date = datetime.strptime(match[1], "%m-%d-%Y %H:%M:%S")
    rails_w: dict[str, float] = {}
    for name, now_mw, _ in _RAIL.findall(text):
        rails_w.setdefault(name, int(now_mw) * 1e-3)
    if not rails_w and not re.search(r"(?<!\S)RAM \d+/\d+MB", text):
        raise ValueError(f"not a line of tegrastats: {text.strip()[:60]!r}")
    found_c = {name: float(value) for name, value in _TEMPERATURE.findall(text) if name != _CONSTANT_SENSOR}
    return Line(rails_w, {name: value for name, value in found_c.items() if value != _DEAD_SENSOR_C}, date)


class Tegrastats:
    """Runs the program while rails are recorded; offered where the rails' files cannot all be read."""

    name = "tegrastats"
    root_files: tuple[str, ...] = ()

    def probe(self, sysroot: Sysroot) -> SourceProbe:
        """Say what is there; the program is run for one line where its rails are wanted."""
        if find_program(sysroot, self.name) is None:
            return self._answer(Availability.ABSENT, "no tegrastats: this is no Jetson board")
        files = Ina3221().probe(sysroot)
        if files.availability is Availability.AVAILABLE and not files.remedy:
            return self._answer(Availability.ABSENT, "found, but not needed: ina3221 reads the same rails from files")
        try:
            rails = [channel.rail for channel in self.channels(sysroot, complain=True)]
        except OSError as error:
            return self._answer(
                Availability.BROKEN,
                f"tegrastats gives no rails: {error}",
                "run `tegrastats --interval 1000` by hand; some releases show the rails only with sudo",
            )
        counted = f"{len(rails)} rail{'s' * (len(rails) != 1)} can be read every {INTERVAL_MS} ms"
        return SourceProbe(source=self.name, availability=Availability.AVAILABLE, detail=counted, rails=tuple(rails))

    def channels(self, sysroot: Sysroot, *, complain: bool = False) -> Sequence[Channel]:
        """Return how to read each rail that the program prints; with ``complain`` OSError where it prints none."""
        program = find_program(sysroot, self.name)
        if program is None:
            return ()
        stream = tegrastats_stream(sysroot, program)
        try:
            with stream.session():
                names = stream.rails()
        except OSError:
            if complain:
                raise
            return ()
        return tuple(
            PolledChannel(rail=_rail(sysroot, name, names), read=partial(stream.read, name), session=stream.session)
            for name in names
        )

    def _answer(self, state: Availability, detail: str, remedy: str = "") -> SourceProbe:
        return SourceProbe(source=self.name, availability=state, detail=detail, remedy=remedy)


class _Rails:
    """Parses the lines of one run of the program; a few in a row without rails end it."""

    def __init__(self) -> None:
        self._without = 0

    def parse_line(self, text: str) -> Mapping[str, float]:
        rails_w = parse_line(text).rails_w
        self._without = 0 if rails_w else self._without + 1
        if self._without >= _MOST_WITHOUT_RAILS:
            raise ConnectionError("it prints no rails to this user")
        return rails_w


def tegrastats_stream(sysroot: Sysroot, program: str) -> Stream:
    """Return a stream of the program's lines."""

    def connect() -> LineFeed:
        command = (str(sysroot.path(program)), "--interval", str(INTERVAL_MS))
        return program_feed(command, _Rails().parse_line)

    return Stream(connect, Tegrastats.name, patience_s=_PATIENCE_S, silence_s=_SILENCE_S)


def power_step_w(rail: str, rails: Collection[str]) -> float:
    """Return a bound of how finely a rail's sensor steps, in W; ``rails`` are all that are printed beside it."""
    return _STEP_5V_W if "5V" in rail or _OF_5V_MODULES in rails else _STEP_W


def _rail(sysroot: Sysroot, name: str, names: Collection[str]) -> Rail:
    step_w = power_step_w(name, names)
    return Rail(
        source=Tegrastats.name,
        name=name,
        quantity=RailQuantity.POWER,
        resolution=step_w,
        relative_error=RELATIVE_ERROR,
        update_period_s=INTERVAL_MS * 1e-3,
        provenance=sensor_provenance(sysroot),
        offset=OFFSET_STEPS * step_w,
    )
