"""The demo's plan: few points, measured well enough for an answer within the given time."""

from __future__ import annotations

from powerlab.domain.mode import CURRENT_MODE_NAME, ModeOrigin
from powerlab.domain.sweep import SweepPlan
from powerlab.protocol.records import DeviceRecord

_REPEATS = 5
"""Student's t halves the interval of the scatter from three repeats to five."""
_BATCH_SIZE = 1
_MAX_MODES = 3
_MAX_THREAD_COUNTS = 4
_OVERHEAD_S = 5.0
"""What a run costs beside its timed part: a worker, loading the model, warming up, the idle baseline after it."""
_WARM_UP_S = 1.0
_LONGEST_WARM_UP_S = 2.0
_SHORTEST_S = 3.0
_LONGEST_S = 5.0


def demo_plan(device: DeviceRecord, model: str, seconds: float) -> SweepPlan:
    """Return threads x modes at batch 1; points are left out rather than runs made too short to compare."""
    modes = _modes(device)
    threads = _threads(device, modes)
    while True:
        duration_s = seconds / (len(modes) * len(threads) * _REPEATS) - _OVERHEAD_S
        if duration_s >= _SHORTEST_S or (len(modes) == 1 and len(threads) <= 2):
            break
        if len(threads) > 2:
            threads = (threads[0], *threads[2:])
        else:
            modes = modes[:-1]
    return SweepPlan(
        models=(model,),
        threads=threads,
        batch_sizes=(_BATCH_SIZE,),
        modes=modes,
        repeats=_REPEATS,
        duration_s=round(min(_LONGEST_S, max(_SHORTEST_S, duration_s)), 1),
        warm_up_s=_WARM_UP_S,
        longest_warm_up_s=_LONGEST_WARM_UP_S,
        idle_s=1.0,
    )


def _modes(device: DeviceRecord) -> tuple[str, ...]:
    # A demo on somebody's own machine switches no cores and no limits: only what the vendor made to be switched.
    settable = [
        mode.name
        for mode in device.capabilities.modes
        if mode.name != CURRENT_MODE_NAME
        and not mode.requires_reboot
        and (device.device.simulated or mode.origin is ModeOrigin.VENDOR)
    ]
    # The first is by custom the vendor's maximum, which a board left alone is mostly in: current shows it already.
    return (CURRENT_MODE_NAME, *(settable[1:_MAX_MODES] or settable))


def _threads(device: DeviceRecord, modes: tuple[str, ...]) -> tuple[int, ...]:
    """Return powers of two and the greatest count that every mode allows, at most four of them."""
    online = [m.online_cores for m in device.capabilities.modes if m.name in modes and m.online_cores is not None]
    most = min([device.device.core_count, *online])
    counts = [1]
    while counts[-1] * 2 < most:
        counts.append(counts[-1] * 2)
    if most > 1:
        counts.append(most)
    return (1, *counts[1:][-(_MAX_THREAD_COUNTS - 1) :])
