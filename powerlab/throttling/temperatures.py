"""All temperatures of processors that a device reports: the kernel's thermal zones, and NVIDIA's cards (NVML).

with Temperatures(sysroot) as temperatures:
    temperatures.read()                 # {"x86_pkg_temp": 61.0, "GPU0": 48.0}
"""

from __future__ import annotations

from contextlib import ExitStack
from types import TracebackType
from typing import Self

from powerlab.nvml_library import Library, NvmlError, NvmlUnavailableError, session
from powerlab.sysroot import Sysroot
from powerlab.throttling.zones import Zones

_ON_DIE = 0
"""nvml.h, nvmlTemperatureSensors_t: the card's only sensor, NVML_TEMPERATURE_GPU."""


class Temperatures:
    """Reads all there is, as long as the context is open; what gives no temperature now is left out, and is not 0 °C.

    The cards of a Jetson have no NVML temperature: its zones have it.
    """

    def __init__(self, sysroot: Sysroot) -> None:
        self._sysroot = sysroot
        self._zones = Zones(sysroot, asleep=True)
        self._stack = ExitStack()
        self._cards: tuple[Library, range] | None = None

    def __enter__(self) -> Self:
        try:
            library = self._stack.enter_context(session(self._sysroot))
            self._cards = library, library.devices()
        except (NvmlUnavailableError, NvmlError):
            self._cards = None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def read(self) -> dict[str, float]:
        """Return the temperatures in °C by the name of their zone or card; empty where there is none."""
        return {**self._zones.read(), **self._of_cards()}

    def _of_cards(self) -> dict[str, float]:
        found: dict[str, float] = {}
        if self._cards is None:
            return found
        library, cards = self._cards
        for index in cards:
            try:
                found[f"GPU{index}"] = float(library.ask("nvmlDeviceGetTemperature", library.device(index), _ON_DIE))
            except NvmlError:
                continue  # cards differ in what they tell, and one may be gone
        return found


def watched_zones(sysroot: Sysroot) -> tuple[str, ...]:
    """Return the names of what gives a temperature now; none where there is nothing to watch."""
    with Temperatures(sysroot) as temperatures:
        return tuple(temperatures.read())
