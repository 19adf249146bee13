"""NVIDIA GPUs through NVML, if the optional package ``nvidia-ml-py`` and a driver are installed.

NVML can start while every query answers "not supported" (Jetson), so each figure is tried before it is offered.

How good the figures are: NVIDIA states 5 % of the power (NVML reference, nvmlDeviceGetPowerUsage), which Yang et al.
found to be an error of gain (arXiv 2312.02741). They see a new value about every 100 ms, and that A100 and H100 look at
a quarter of that time: a load that repeats in step with the sensor is misread by more than the stated error there, in
the energy counter too. So the declared period is 100 ms, the real one is found by watching the value, and a rail says
what share of its time its sensor looks. What the figures mean on which generation:
:mod:`powerlab.nvml_library.generation`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from powerlab.domain.power import Availability, Rail, RailQuantity, SourceProbe
from powerlab.nvml_library import (
    Library,
    NvmlError,
    NvmlUnavailableError,
    seen_share,
    session,
    unavailable,
    usage_is_average,
)
from powerlab.power.base import Channel, PolledChannel
from powerlab.power.sources.scan import sensor_provenance
from powerlab.sysroot import Sysroot

_FIELD_POWER_AVERAGE = 185
_FIELD_POWER_INSTANT = 186
_RELATIVE_ERROR = 0.05
_STEP = 1e-3
"""mJ and mW."""
_UPDATE_PERIOD_S = 0.1
_AVERAGE_PERIOD_S = 1.0
"""The average is over the last second, on Ampere and later: a change needs that long to show in full."""

_NO_FIGURES_REMEDY = "on a Jetson board use the rails of ina3221 instead; elsewhere a newer driver may help"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Metric:
    """One figure that a processor may give: how it is read, in W or J, and how often it changes."""

    name: str
    quantity: RailQuantity
    update_period_s: float
    read: Callable[[Library, int], float]


def _energy_j(library: Library, index: int) -> float:
    return float(library.ask("nvmlDeviceGetTotalEnergyConsumption", library.device(index))) * 1e-3


def _field_w(field: int, library: Library, index: int) -> float:
    """Read a field value; unlike other calls it reports its error inside the answer."""
    answer = library.ask("nvmlDeviceGetFieldValues", library.device(index), [field])[0]
    if answer.nvmlReturn != 0:
        raise NvmlError(f"field {field} is not given", int(answer.nvmlReturn))
    return float(answer.value.uiVal) * 1e-3


def _usage_w(library: Library, index: int) -> float:
    return float(library.ask("nvmlDeviceGetPowerUsage", library.device(index))) * 1e-3


_ENERGY = _Metric(name="energy", quantity=RailQuantity.ENERGY, update_period_s=_UPDATE_PERIOD_S, read=_energy_j)
_INSTANT = _Metric(
    name="instant",
    quantity=RailQuantity.POWER,
    update_period_s=_UPDATE_PERIOD_S,
    read=partial(_field_w, _FIELD_POWER_INSTANT),
)
_AVERAGE = _Metric(
    name="average",
    quantity=RailQuantity.POWER,
    update_period_s=_AVERAGE_PERIOD_S,
    read=partial(_field_w, _FIELD_POWER_AVERAGE),
)
_USAGE = _Metric(name="usage", quantity=RailQuantity.POWER, update_period_s=_AVERAGE_PERIOD_S, read=_usage_w)
"""For drivers without the two above: an average or the power now, as the processor's generation has it."""
_USAGE_NOW = replace(_USAGE, update_period_s=_UPDATE_PERIOD_S)


class Nvml:
    """``GPU0`` is a processor's best figure: its energy counter, else its power now, else its average power.

    Beside it ``GPU0 instant`` and ``GPU0 average`` are offered where they are something else, for comparison: they
    are the same power again, so they belong into no total.
    """

    name = "nvml"
    root_files: tuple[str, ...] = ()

    def probe(self, sysroot: Sysroot) -> SourceProbe:
        """Say what is there."""
        try:
            with session(sysroot) as library:
                return self._describe(sysroot, library)
        except NvmlError as error:
            return self._answer(unavailable(error, sysroot))
        except NvmlUnavailableError as problem:
            return self._answer(problem)

    def channels(self, sysroot: Sysroot) -> Sequence[Channel]:
        """Return how to read each rail; a session keeps NVML started, so that reading is quick."""
        try:
            with session(sysroot) as library:
                return [channel for index in library.devices() for channel in _channels(sysroot, library, index)]
        except (NvmlError, NvmlUnavailableError):
            return ()

    def _answer(self, problem: NvmlUnavailableError) -> SourceProbe:
        return SourceProbe(
            source=self.name, availability=problem.availability, detail=problem.detail, remedy=problem.remedy
        )

    def _describe(self, sysroot: Sysroot, library: Library) -> SourceProbe:
        names = {index: _name(library, index) for index in library.devices()}
        if not names:
            return SourceProbe(
                source=self.name, availability=Availability.ABSENT, detail="NVML finds no graphics processor"
            )
        rails = tuple(channel.rail for index in names for channel in _channels(sysroot, library, index))
        silent = [f"GPU{index}" for index in names if not any(_belongs(rail, index) for rail in rails)]
        if not rails:
            return SourceProbe(
                source=self.name,
                availability=Availability.BROKEN,
                detail=f"{_counted(names.values())}: NVML answers, but gives neither energy nor power",
                remedy=_NO_FIGURES_REMEDY,
            )
        detail = _counted(names.values())
        if silent:
            detail += f"; {', '.join(silent)} gives neither energy nor power"
        if any(rail.seen_share < 1 for rail in rails):
            detail += "; its sensor looks at a quarter of the time, which widens intervals (arXiv 2312.02741)"
        remedy = _NO_FIGURES_REMEDY if silent else ""
        return SourceProbe(
            source=self.name, availability=Availability.AVAILABLE, detail=detail, remedy=remedy, rails=rails
        )


def _name(library: Library, index: int) -> str:
    try:
        return library.text("nvmlDeviceGetName", library.device(index))
    except NvmlError as error:
        return f"GPU{index} ({error.words})"


def _counted(names: Iterable[str]) -> str:
    """Return names with how many there are of each: ``2 x NVIDIA RTX A5000``."""
    return ", ".join(f"{count} x {name}" if count > 1 else name for name, count in Counter(names).items())


def _belongs(rail: Rail, index: int) -> bool:
    return rail.name.partition(" ")[0] == f"GPU{index}"


def _channels(sysroot: Sysroot, library: Library, index: int) -> Iterator[PolledChannel]:
    """Yield one processor's rails, the best one first; none where it gives no figure."""
    found = [metric for metric in (_ENERGY, _INSTANT, _AVERAGE) if _gives(library, index, metric)]
    if not any(metric.quantity is RailQuantity.POWER for metric in found) and _gives(library, index, _USAGE):
        found.append(_USAGE if usage_is_average(library, index) else _USAGE_NOW)
    share = seen_share(library, index, _name(library, index)) if found else 1.0
    for position, metric in enumerate(found):
        rail = Rail(
            source=Nvml.name,
            name=f"GPU{index} {metric.name}" if position else f"GPU{index}",
            quantity=metric.quantity,
            resolution=_STEP,
            relative_error=_RELATIVE_ERROR,
            update_period_s=metric.update_period_s,
            provenance=sensor_provenance(sysroot),
            seen_share=share,
        )
        yield PolledChannel(rail=rail, read=partial(_read, library, index, metric), session=library.started)


def _gives(library: Library, index: int, metric: _Metric) -> bool:
    """Tell whether a processor answers; 0 is what some drivers say where they mean "not supported"."""
    try:
        return metric.read(library, index) > 0
    except NvmlError:
        return False


def _read(library: Library, index: int, metric: _Metric) -> float:
    with library.started():
        return metric.read(library, index)
