"""Power modes that nobody named: combinations of the cores and clocks a device offers (``--propose-modes``)."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

from powerlab.domain.mode import PowerMode
from powerlab.domain.workload import Processor
from powerlab.search.traits import JOINT, traits_of

OF_CORES = ("cores", "cpu-max", "gpu-max", "emc-max")
OF_CARDS = (
    *("gpu-max", "emc-max"),
    *("gpu-limit", "gpu-lock", "gpu-memory-lock"),
    *("amd-gpu-limit", "intel-gpu-limit", "intel-gpu-max"),
)
"""What is combined for plans on the cores and on graphics processors, in the order of a name's parts."""
MOST_PROPOSED = 256


def proposed_modes(
    offered: Iterable[PowerMode], most_threads: int, processors: Iterable[Processor] = (Processor.CPU,)
) -> tuple[str, ...]:
    """Return the names of combined modes: cores x CPU x GPU x memory clocks, each as offered by itself or left alone.

    For graphics processors it is their clocks and power limits.

    They stay within what the device says it can set now, one value of each kind: what may not be turned offers nothing,
    and what needs a reboot is left out. So are modes with fewer cores than the plan has threads. Single settings are
    proposed too, for nobody may have named them.

    Args:
        offered: the modes that the device lists.
        most_threads: the most threads of the plan.
        processors: what the plan computes on.
    """
    keys = [key for one in sorted(processors) for key in (OF_CARDS if one is Processor.GPU else OF_CORES)]
    values: dict[str, list[str]] = {key: [] for key in keys}
    for mode in offered:
        numbers = traits_of(mode.name, {}).numbers
        key = next(iter(numbers), "")
        alone = len(numbers) == 1 and JOINT not in mode.name and not mode.requires_reboot
        if alone and key in values and (key != "cores" or numbers[key] >= most_threads):
            values[key].append(mode.name)
    choices = [("", *found) for found in values.values()]
    names = (JOINT.join(filter(None, parts)) for parts in product(*choices))
    return tuple(name for name in names if name)[:MOST_PROPOSED]
