"""NVIDIA's management library (NVML) of a system root: the host's own, or the one that lies in a tree.

    with session(sysroot) as library:            # or NvmlUnavailableError: what is missing, and how to fix it
        library.ask("nvmlDeviceGetPowerUsage", library.device(0))

The power source, the knob and the watch share it. Calls go through the package ``nvidia-ml-py``. Its module ``pynvml``
keeps one library for the whole process, so each tree has a copy of that module of its own.
"""

from __future__ import annotations

from powerlab.nvml_library.generation import compute_capability, seen_share, usage_is_average
from powerlab.nvml_library.library import Library, NvmlError
from powerlab.nvml_library.loading import load, session
from powerlab.nvml_library.problems import NvmlUnavailableError, unavailable

__all__ = [
    "Library",
    "NvmlError",
    "NvmlUnavailableError",
    "compute_capability",
    "load",
    "seen_share",
    "session",
    "unavailable",
    "usage_is_average",
]
