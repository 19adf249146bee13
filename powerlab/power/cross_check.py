"""Compare rails reported by programs with the same rails' own files.

Each line of a program is compared with the files as they are when the line has come. Power moves meanwhile, so a rail
is only complained about where even the closest of several comparisons is further off than both may step.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from powerlab.power.base import FileChannel, PolledChannel, PowerSource
from powerlab.power.sources.ina238.source import Ina238
from powerlab.power.sources.ina3221 import Ina3221
from powerlab.power.sources.jtop.source import Jtop
from powerlab.power.sources.scan import parse_integer
from powerlab.power.sources.tegrastats import Tegrastats
from powerlab.sysroot import Sysroot

FILES: tuple[PowerSource, ...] = (Ina3221(), Ina238())
PROGRAMS: tuple[PowerSource, ...] = (Tegrastats(), Jtop())
_COMPARISONS, _MOST_COMPARISONS = 5, 20
_PAUSE_S = 0.01
_PRINTED_STEP_W = 0.001
"""Programs cut to whole milliwatts."""


@dataclass(frozen=True, slots=True)
class Compared:
    """One rail: the closest pair of its readings in W."""

    told_w: float
    file_w: float

    @property
    def apart_w(self) -> float:
        """How far apart they are."""
        return abs(self.told_w - self.file_w)


def cross_check(sysroot: Sysroot) -> tuple[str, ...]:
    """Return one sentence for each rail that a program tells differently; none where nothing can be compared.

    Takes up to some seconds where a program is there, for it has to be run.
    """
    files = {
        channel.rail.name: channel
        for source in FILES
        for channel in source.channels(sysroot)
        if isinstance(channel, FileChannel)
    }
    if not files:
        return ()
    return tuple(sentence for program in PROGRAMS for sentence in _check(sysroot, program, files))


def _check(sysroot: Sysroot, program: PowerSource, files: Mapping[str, FileChannel]) -> list[str]:
    told = [one for one in program.channels(sysroot) if isinstance(one, PolledChannel) and one.rail.name in files]
    if not told:
        return []
    try:
        closest = _compare(sysroot, told, files)
    except OSError as error:
        return [f"{program.name} could not be compared with the rails' files: {error}"]
    sentences = []
    for name, found in closest.items():
        channel = files[name]
        allowed_w = 2 * channel.rail.resolution + _PRINTED_STEP_W
        if found.apart_w > allowed_w:
            sentences.append(
                f"{program.name} says {found.told_w:.3f} W for {name}, but {channel.rail.source} reads "
                f"{found.file_w:.3f} W: more than their steps apart; trust neither before you know why"
            )
    return sentences


def _compare(sysroot: Sysroot, told: Sequence[PolledChannel], files: Mapping[str, FileChannel]) -> dict[str, Compared]:
    """Run the program and compare each of its next readings.

    Raises:
        OSError: the program ended, or a file cannot be read any more.
    """
    closest: dict[str, Compared] = {}
    session = told[0].session
    if session is None:
        return closest
    with session():
        counts = dict.fromkeys((channel.rail.name for channel in told), 0)
        # A rail that comes less often than the others is compared less often, and may not come at all.
        while min(counts.values()) < _COMPARISONS and max(counts.values()) < _MOST_COMPARISONS:
            time.sleep(_PAUSE_S)
            for channel in told:
                name = channel.rail.name
                for value_w in _values_w(channel):
                    found = Compared(value_w, _file_w(sysroot, files[name]))
                    counts[name] += 1
                    if name not in closest or found.apart_w < closest[name].apart_w:
                        closest[name] = found
    return closest


def _values_w(channel: PolledChannel) -> list[float]:
    value = channel.read()
    if isinstance(value, tuple):
        return [stamped.value for stamped in value]
    return [value if isinstance(value, float) else value.value]


def _file_w(sysroot: Sysroot, channel: FileChannel) -> float:
    try:
        return math.prod(parse_integer(sysroot.read(path)) for path in channel.paths) * channel.scale
    except ValueError as error:
        raise OSError(f"{channel.rail.name}: {error}") from error
