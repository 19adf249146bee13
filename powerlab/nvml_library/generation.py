"""What a card's generation means for its power figures.

- ``nvmlDeviceGetPowerUsage`` is the mean of a second on Ampere and later, but for GA100 (A100, A30); there and before
  it is the power now (NVML reference). Field values tell the two apart everywhere (``NVML_FI_DEV_POWER_INSTANT``,
  ``NVML_FI_DEV_POWER_AVERAGE``).
- A100 and H100 average 25 ms of every 100 ms and do not see the rest (Yang, Adamek and Armour, arXiv 2312.02741). All
  cards with these chips' compute capability, 8.0 and 9.0, are taken to do so.
"""

from __future__ import annotations

import re

from powerlab.nvml_library.library import Library, NvmlError

_GA100, _GH100 = (8, 0), (9, 0)
PART_TIME_SHARE = 0.25
_PART_TIME_NAMES = re.compile(r"\b(A100|A800|A30|H100|H800|H200|GH200)\b")


def compute_capability(library: Library, index: int) -> tuple[int, int] | None:
    """Return a card's CUDA compute capability, which names its generation; None where the driver does not tell."""
    try:
        major, minor = library.ask("nvmlDeviceGetCudaComputeCapability", library.device(index))
    except NvmlError:
        return None
    return int(major), int(minor)


def usage_is_average(library: Library, index: int) -> bool:
    """Tell whether ``nvmlDeviceGetPowerUsage`` is the mean of a second; so where nobody knows, for that is slower."""
    capability = compute_capability(library, index)
    return capability is None or capability > _GA100


def seen_share(library: Library, index: int, name: str) -> float:
    """Return the share of its time in which a card's power sensor looks."""
    capability = compute_capability(library, index)
    known = bool(_PART_TIME_NAMES.search(name)) if capability is None else capability in {_GA100, _GH100}
    return PART_TIME_SHARE if known else 1.0
