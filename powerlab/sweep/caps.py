"""The caps of the vendor's power modes, as an adaptive sweep's model reads them."""

from __future__ import annotations

from powerlab.boards.board import VendorMode


def caps_of(mode: VendorMode) -> dict[str, float]:
    """Return a vendor's mode in the keys and units of invented ones (``cpu-max`` in kHz), without what it leaves open."""
    caps = {"cores": mode.cores, "cpu-max": mode.cpu_khz, "gpu-max": mode.gpu_hz, "emc-max": mode.emc_hz}
    return {key: float(value) for key, value in caps.items() if value > 0}
