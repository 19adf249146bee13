"""State of a device during a run: software, clock settings, fans."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """A clock with its limits, all in Hz; None where the kernel does not say.

    Attributes:
        name: as the kernel names it, ``policy0`` or ``17000000.gv11b``.
        governor: what chooses the clock; empty where the kernel does not say.
        low_hz: the lower limit that is set.
        high_hz: the upper one.
        now_hz: what it was just before the timed part, while nothing was asked of the device.
    """

    name: str
    governor: str = ""
    low_hz: int | None = None
    high_hz: int | None = None
    now_hz: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fan:
    """A fan; None where the kernel does not say.

    Attributes:
        name: the chip that drives it and the number there, ``pwmfan 1``.
        speed_rpm: how fast it turns.
        pwm: how it is driven, from 0 to 255.
    """

    name: str
    speed_rpm: int | None = None
    pwm: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Graphics:
    """A graphics processor.

    Attributes:
        name: the driver's name of it, or its maker and PCI identifier.
        driver: name and version; empty where nobody says.
        memory_bytes: its own memory; None where it has none or nobody says.
    """

    name: str
    driver: str = ""
    memory_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceState:
    """What a device was just before the timed part of a run. What no file tells is empty: unknown, not absent.

    Attributes:
        kernel: its release.
        kernel_build: when and how it was built, as ``uname -v``.
        l4t_release: of NVIDIA's Linux for Tegra, ``R35.4.1``.
        firmware: version and date of BIOS or UEFI.
        microcode: of the processor.
        drivers: name and version of the graphics drivers that state one, ``nvidia 550.54.14``.
        cpu_clocks: one for each cluster of cores.
        graphics: the graphics processors, in the order of their makers' numbers.
        device_clocks: one for each device with a clock of its own: graphics, memory (devfreq), graphics cards.
        fans: all that the kernel knows.
    """

    kernel: str = ""
    kernel_build: str = ""
    l4t_release: str = ""
    firmware: str = ""
    microcode: str = ""
    drivers: tuple[str, ...] = ()
    graphics: tuple[Graphics, ...] = ()
    cpu_clocks: tuple[Clock, ...] = ()
    device_clocks: tuple[Clock, ...] = ()
    fans: tuple[Fan, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockOffset:
    """How the device's wall clock stood to its server's when a run began.

    Found as NTP does, from four stamps of the exchange with the shortest round trip (RFC 5905, section 8).

    Attributes:
        offset_s: the server's time minus the device's.
        uncertainty_s: half the round trip: the offset is at most so far off, whatever way the time went on the line.
        age_s: how long before the run that was found. What a quartz drifts meanwhile, some 0.05 ms a second at worst,
            comes on top; a wall clock that was set meanwhile is reckoned with.
    """

    offset_s: float
    uncertainty_s: float
    age_s: float
