"""What a run keeps of its device, in words: for the page of the run and for the command line."""

from __future__ import annotations

from collections.abc import Iterator

from powerlab.domain.device_state import Clock, ClockOffset, DeviceState, Fan
from powerlab.domain.run import Conditions, Run

UNKNOWN = "unknown"


def surroundings(run: Run) -> tuple[tuple[str, str], ...]:
    """Return titles and what the run says; none for a run that failed, or that an older powerlab measured."""
    conditions = run.conditions
    if conditions is None or conditions.device_state is None:
        return ()
    return (*_software(conditions, conditions.device_state), *_settings(conditions.device_state, conditions))


def _software(conditions: Conditions, state: DeviceState) -> Iterator[tuple[str, str]]:
    yield "kernel", " ".join(filter(None, (state.kernel, state.kernel_build))) or UNKNOWN
    yield "L4T release", state.l4t_release or UNKNOWN
    yield "firmware", state.firmware or UNKNOWN
    yield "microcode", state.microcode or UNKNOWN
    yield "graphics drivers", ", ".join(state.drivers) or UNKNOWN
    for graphics in state.graphics:
        yield "graphics", ", ".join(filter(None, (graphics.name, graphics.driver, _memory(graphics.memory_bytes))))
    yield "powerlab", conditions.measured_with or UNKNOWN
    yield "engine", conditions.engine_version or UNKNOWN
    if conditions.processor_name:
        yield "computed on", conditions.processor_name


def _memory(size_bytes: int | None) -> str:
    return f"{size_bytes / 2**30:.3g} GiB" if size_bytes else ""


def _settings(state: DeviceState, conditions: Conditions) -> Iterator[tuple[str, str]]:
    for clock in (*state.cpu_clocks, *state.device_clocks):
        yield f"clock of {clock.name}", _clock(clock)
    yield "fans", ", ".join(map(_fan, state.fans)) or UNKNOWN
    if conditions.temperature_guard:
        yield "temperature guard", conditions.temperature_guard
    yield "time of day", _offset(conditions.clock_offset)


def _clock(clock: Clock) -> str:
    limits = f"{_mhz(clock.low_hz)} to {_mhz(clock.high_hz)} MHz, {_mhz(clock.now_hz)} MHz before the load"
    return f"{clock.governor}, {limits}" if clock.governor else limits


def _mhz(frequency_hz: int | None) -> str:
    return UNKNOWN if frequency_hz is None else f"{frequency_hz / 1e6:.6g}"


def _fan(fan: Fan) -> str:
    said = (
        None if fan.speed_rpm is None else f"{fan.speed_rpm} rpm",
        None if fan.pwm is None else f"PWM {fan.pwm} of 255",
    )
    return f"{fan.name}: {', '.join(filter(None, said)) or UNKNOWN}"


def _offset(offset: ClockOffset | None) -> str:
    if offset is None:
        return "by the device's own clock, which was compared with no server's"
    way = "behind" if offset.offset_s > 0 else "ahead of"
    return (
        f"by the device's own clock, {_seconds(abs(offset.offset_s))} {way} the server's, to within"
        f" {_seconds(offset.uncertainty_s)} as compared {_seconds(offset.age_s)} before"
    )


def _seconds(duration_s: float) -> str:
    return f"{duration_s:.3g} s" if duration_s >= 1 else f"{1000 * duration_s:.3g} ms"
