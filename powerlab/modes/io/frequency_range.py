"""A clock's lower and upper limit, written in an order that never puts the lower above the upper."""

from __future__ import annotations

from dataclasses import dataclass

from powerlab.domain.errors import PowerlabError
from powerlab.modes.io import thermal_caps
from powerlab.modes.io.files import read_value, write_value
from powerlab.sysroot import Sysroot


@dataclass(frozen=True, slots=True)
class FrequencyRange:
    """Limits of a clock in the unit of its driver; as a setting's value it reads ``low-high``.

    Raises:
        ValueError: the lower limit is above the upper one.
    """

    low: int
    high: int

    def __post_init__(self) -> None:
        if self.low > self.high:
            raise ValueError(f"{self.low} is above {self.high}")

    def __str__(self) -> str:
        return f"{self.low}-{self.high}"

    @classmethod
    def parse(cls, text: str) -> FrequencyRange:
        """Return the range a setting's value stands for.

        Raises:
            PowerlabError: the text is no range.
        """
        low, _, high = text.partition("-")
        try:
            return cls(int(low), int(high))
        except ValueError:
            raise PowerlabError(
                f"{text!r} is not a frequency range; write it as low-high, for example 115200-2265600."
            ) from None


def read_range(sysroot: Sysroot, low_path: str, high_path: str) -> FrequencyRange:
    """Return a clock's limits as they are.

    Raises:
        OSError: a file cannot be read.
        ValueError: a file holds no number, or the limits are the wrong way round.
    """
    return FrequencyRange(int(read_value(sysroot, low_path)), int(read_value(sysroot, high_path)))


def write_range(sysroot: Sysroot, low_path: str, high_path: str, wanted: FrequencyRange) -> None:
    """Set a clock's limits.

    Drivers refuse a lower limit above the upper one and the other way round (kernel, cpufreq.c and devfreq.c), so the
    limit that moves outwards is written first.

    Raises:
        PowerlabError: the device refuses.
    """
    try:
        high_now = int(read_value(sysroot, high_path))
    except (OSError, ValueError):
        high_now = wanted.high
    if wanted.low <= high_now:
        write_value(sysroot, low_path, str(wanted.low))
        write_value(sysroot, high_path, str(wanted.high))
    else:
        write_value(sysroot, high_path, str(wanted.high))
        write_value(sysroot, low_path, str(wanted.low))


def write_high(sysroot: Sysroot, low_path: str, high_path: str, high: int) -> None:
    """Set a clock's upper limit and make sure that it holds; a lower limit above it comes down to it first.

    Raises:
        PowerlabError: the device refuses, or keeps another limit.
    """
    low_now = _now(sysroot, low_path)
    if low_now is not None and low_now > high:
        write_value(sysroot, low_path, str(high))
    _write_exactly(sysroot, high_path, high)


def write_low(sysroot: Sysroot, low_path: str, high_path: str, low: int) -> None:
    """Set a clock's lower limit and make sure that it holds; an upper limit below it goes up to it first.

    Raises:
        PowerlabError: the device refuses, or keeps another limit.
    """
    high_now = _now(sysroot, high_path)
    if (
        high_now is not None and high_now < low and not thermal_caps.holds(sysroot)
    ):  # what heat leaves is not what was set
        write_value(sysroot, high_path, str(low))
    _write_exactly(sysroot, low_path, low)


def _write_exactly(sysroot: Sysroot, path: str, wanted: int) -> None:
    write_value(sysroot, path, str(wanted))
    found = _now(sysroot, path)
    held_by_heat = found is not None and found < wanted and thermal_caps.holds(sysroot)
    if found != wanted and not held_by_heat:
        raise PowerlabError(
            f"{path} was set to {wanted} and reads {found}: the kernel rounds, or another limit holds (the firmware's);"
            f" ask for {found}."
        )


def _now(sysroot: Sysroot, path: str) -> int | None:
    try:
        return int(read_value(sysroot, path))
    except (OSError, ValueError):
        return None
