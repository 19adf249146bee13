"""NVIDIA graphics processors through NVML, where the optional package ``nvidia-ml-py`` and a driver are installed.

NVML can start while every query answers "not supported" (Jetson), so each figure is tried before it is offered. The
driver samples the sensors for about a quarter of the time on A100 and H100 (Yang et al., arXiv 2312.02741).
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from powerlab.domain.power import Availability, Rail, RailQuantity, SourceProbe
from powerlab.domain.quantity import Provenance
from powerlab.power.base import Channel, PolledChannel
from powerlab.sysroot import Sysroot

_FIELD_POWER_INSTANT = 186
_RELATIVE_ERROR = 0.05
_ENERGY_STEP_J = 1e-3
_POWER_STEP_W = 1e-3
_ENERGY_PERIOD_S = 0.1
_INSTANT_PERIOD_S = 0.1
_AVERAGE_PERIOD_S = 1.0

_NO_PACKAGE = "the Python package nvidia-ml-py is not installed"
_PACKAGE_REMEDY = "only for a machine with an NVIDIA graphics processor: `pip install 'powerlab[nvidia]'`"


class Nvml:
    """One rail a processor: its energy counter, else its power now, else its power averaged over a second."""

    name = "nvml"

    def probe(self, sysroot: Sysroot) -> SourceProbe:
        """Say what is there. A sysroot that is not this machine's own is not asked: NVML would answer for the host."""
        if sysroot.base != Path("/"):
            return self._absent("not asked: NVML speaks for this host, not for the system root in use")
        try:
            nvml = _load()
        except ImportError:
            return self._absent(_NO_PACKAGE, _PACKAGE_REMEDY)
        try:
            with _session(nvml):
                return self._describe(nvml)
        except nvml.NVMLError as error:
            return self._absent(f"NVML does not start: {error}")

    def channels(self, sysroot: Sysroot) -> Sequence[Channel]:
        """Return how to read each rail; NVML stays started for the rest of the process, so that reading stays quick."""
        if sysroot.base != Path("/"):
            return ()
        try:
            nvml = _load()
        except ImportError:
            return ()
        try:
            nvml.nvmlInit()
            return [channel for channel in (_channel(nvml, index) for index in _indices(nvml)) if channel]
        except nvml.NVMLError:
            return ()

    def _absent(self, detail: str, remedy: str = "") -> SourceProbe:
        return SourceProbe(source=self.name, availability=Availability.ABSENT, detail=detail, remedy=remedy)

    def _describe(self, nvml: Any) -> SourceProbe:
        indices = _indices(nvml)
        if not indices:
            return self._absent("NVML finds no graphics processor")
        channels = [channel for channel in (_channel(nvml, index) for index in indices) if channel]
        names = ", ".join(_text(nvml.nvmlDeviceGetName(nvml.nvmlDeviceGetHandleByIndex(index))) for index in indices)
        if not channels:
            return SourceProbe(
                source=self.name,
                availability=Availability.BROKEN,
                detail=f"{names}: NVML answers, but gives neither energy nor power",
                remedy="on a Jetson board use the rails of ina3221 instead; elsewhere a newer driver may help",
            )
        rails = tuple(channel.rail for channel in channels)
        return SourceProbe(source=self.name, availability=Availability.AVAILABLE, detail=names, rails=rails)


def _load() -> Any:
    return importlib.import_module("pynvml")


@contextmanager
def _session(nvml: Any) -> Iterator[None]:
    nvml.nvmlInit()
    try:
        yield
    finally:
        nvml.nvmlShutdown()


def _indices(nvml: Any) -> range:
    return range(nvml.nvmlDeviceGetCount())


def _text(name: str | bytes) -> str:
    return name.decode(errors="replace") if isinstance(name, bytes) else name


def _energy_j(nvml: Any, handle: Any) -> float:
    return float(nvml.nvmlDeviceGetTotalEnergyConsumption(handle)) * 1e-3


def _instant_power_w(nvml: Any, handle: Any) -> float:
    """Read a field value; unlike the other calls it reports its error inside the answer."""
    field = nvml.nvmlDeviceGetFieldValues(handle, [_FIELD_POWER_INSTANT])[0]
    if field.nvmlReturn != 0:
        raise nvml.NVMLError(field.nvmlReturn)
    return float(field.value.uiVal) * 1e-3


def _average_power_w(nvml: Any, handle: Any) -> float:
    return float(nvml.nvmlDeviceGetPowerUsage(handle)) * 1e-3


_METRICS: tuple[tuple[Callable[[Any, Any], float], RailQuantity, float, float], ...] = (
    (_energy_j, RailQuantity.ENERGY, _ENERGY_STEP_J, _ENERGY_PERIOD_S),
    (_instant_power_w, RailQuantity.POWER, _POWER_STEP_W, _INSTANT_PERIOD_S),
    (_average_power_w, RailQuantity.POWER, _POWER_STEP_W, _AVERAGE_PERIOD_S),
)
"""What can be read, with its step and period, best first."""


def _channel(nvml: Any, index: int) -> PolledChannel | None:
    """Return the best metric that one processor answers to, None where it answers to none."""
    handle = nvml.nvmlDeviceGetHandleByIndex(index)
    for metric, quantity, step, period_s in _METRICS:
        read = partial(_read, nvml, handle, metric)
        try:
            value = read()
        except OSError:
            continue
        # A power of 0 W is what some drivers say where they mean "not supported".
        if value <= 0:
            continue
        rail = Rail(
            source=Nvml.name,
            name=f"GPU{index}",
            quantity=quantity,
            resolution=step,
            relative_error=_RELATIVE_ERROR,
            update_period_s=period_s,
            provenance=Provenance.MEASURED,
        )
        return PolledChannel(rail=rail, read=read)
    return None


def _read(nvml: Any, handle: Any, metric: Callable[[Any, Any], float]) -> float:
    try:
        return metric(nvml, handle)
    except nvml.NVMLError as error:
        raise OSError(f"NVML: {error}") from error
