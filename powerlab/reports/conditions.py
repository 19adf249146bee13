"""The device and the conditions of a sweep, as its runs kept them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from statistics import median

from powerlab.domain.device_state import Clock
from powerlab.domain.run import Conditions, Run, Verdict
from powerlab.reports.subject import Subject
from powerlab.reports.text import counted

UNKNOWN = "unknown"
_MOST = 4
"""Different values of one thing that are listed; of more, the first and how many there are."""


def facts(subject: Subject) -> tuple[tuple[str, str], ...]:
    """Return names with what is known of them; what nobody recorded is left out."""
    return tuple((name, value) for name, value in _facts(subject) if value)


def _facts(subject: Subject) -> Iterator[tuple[str, str]]:
    device, conditions = subject.device, [run.conditions for run in subject.runs if run.conditions is not None]
    simulated = "simulated board: no figure is of a real device" if subject.simulated else ""
    yield "Device", ", ".join(filter(None, (subject.device_name, simulated)))
    if device is not None:
        yield "Processor", f"{device.cpu_model}, {counted(device.core_count, 'core')}, {device.architecture}"
        yield "Memory", f"{device.memory_bytes / 2**30:.3g} GiB" if device.memory_bytes else ""
    states = [one.device_state for one in conditions if one.device_state is not None]
    yield "Kernel", _values(" ".join(filter(None, (one.kernel, one.kernel_build))) for one in states)
    yield "L4T release", _values(one.l4t_release for one in states)
    yield "Firmware", _values(one.firmware for one in states)
    yield "Microcode", _values(one.microcode for one in states)
    yield "Graphics drivers", _values(", ".join(one.drivers) for one in states)
    yield "Graphics", _values(", ".join(f"{gpu.name} ({gpu.driver})" for gpu in one.graphics) for one in states)
    yield "Engines", _values(_engine(run) for run in subject.runs)
    yield "powerlab", _values(one.measured_with for one in conditions)
    yield "Power covers", _power(subject)
    yield from _clocks(subject)
    yield "Temperature", _temperatures(subject)
    yield "Other load", _background(conditions)
    yield "Measured", f"{subject.date}, UTC"


def _values(values: Iterator[str]) -> str:
    """Return every value once, with how often where they differ."""
    found = Counter(value for value in values if value)
    if len(found) < 2:
        return "".join(found)
    said = [f"{value} ({counted(count, 'run')})" for value, count in found.most_common(_MOST)]
    rest = len(found) - len(said)
    return "; ".join([*said, f"and {rest} more"] if rest else said)


def _engine(run: Run) -> str:
    version = "" if run.conditions is None else run.conditions.engine_version
    return f"{run.point.workload.engine} {version}".strip()


def _power(subject: Subject) -> str:
    total = next((run.total for run in subject.runs if run.total is not None), None)
    if total is None:
        return "nothing: no power source could be read"
    proposed = "; a total that powerlab proposes, because it does not know this board" if total.proposed else ""
    return f"{total.scope} ({' + '.join(total.rails)}){proposed}"


def _clocks(subject: Subject) -> Iterator[tuple[str, str]]:
    """Yield governor and limits of the clocks, by power mode where they differ; clocks that are alike together."""
    by_clock: dict[str, dict[str, list[str]]] = {}
    for run in subject.runs:
        state = None if run.conditions is None else run.conditions.device_state
        for clock in () if state is None else (*state.cpu_clocks, *state.device_clocks):
            modes = by_clock.setdefault(clock.name, {}).setdefault(_limits(clock), [])
            if run.point.mode not in modes:
                modes.append(run.point.mode)
    alike: dict[str, list[str]] = {}
    for name, settings in by_clock.items():
        said = (words if len(settings) == 1 else f"{', '.join(modes)}: {words}" for words, modes in settings.items())
        alike.setdefault("; ".join(said), []).append(name)
    for words, names in alike.items():
        yield f"Clock{'s' * (len(names) > 1)} {', '.join(names)}", words


def _limits(clock: Clock) -> str:
    return ", ".join(filter(None, (clock.governor, f"{_mhz(clock.low_hz)} to {_mhz(clock.high_hz)} MHz")))


def _mhz(frequency_hz: int | None) -> str:
    return UNKNOWN if frequency_hz is None else f"{frequency_hz / 1e6:.5g}"


def _temperatures(subject: Subject) -> str:
    usable = [run for run in subject.runs if run.verdict is not Verdict.FAILED]
    starts = [metric.value for run in usable if (metric := run.metric("start_temperature_c")) is not None]
    ends = [metric.value for run in usable if (metric := run.metric("end_temperature_c")) is not None]
    if not starts or not ends:
        return "no thermal zone could be read"
    return (
        f"hottest zone {min(starts):.1f} to {max(starts):.1f} °C when the runs began, "
        f"{min(ends):.1f} to {max(ends):.1f} °C when they ended"
    )


def _background(conditions: list[Conditions]) -> str:
    return _middle(conditions, lambda one: one.background_cores)


def _middle(conditions: list[Conditions], read: Callable[[Conditions], float | None]) -> str:
    found = [value for one in conditions if (value := read(one)) is not None]
    return f"median {median(found):.2f}, at most {max(found):.2f} cores busy with other programs" if found else ""
