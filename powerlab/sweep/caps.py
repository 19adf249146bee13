"""The caps of the vendor's power modes, as an adaptive sweep's model reads them."""

from __future__ import annotations

from powerlab.boards.board import VendorMode


def caps_of(mode: VendorMode) -> dict[str, float]:
    """Return the caps of a vendor's mode in the keys and units of invented modes (``cpu-max`` in kHz)."""
    caps = {"cores": mode.cores, "cpu-max": mode.cpu_khz, "gpu-max": mode.gpu_hz, "emc-max": mode.emc_hz}
    return {key: float(value) for key, value in caps.items() if value > 0}
