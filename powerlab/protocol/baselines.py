"""Messages about baselines."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineSweep:
    """A sweep of a baseline.

    Attributes:
        sweep_id: the sweep.
        device_id: where it was measured.
        device_name: that device's name.
        models: what it measured.
        set_at: when it was made part of the baseline, UTC.
        set_by: by whom.
    """

    sweep_id: str
    device_id: str
    device_name: str
    models: tuple[str, ...]
    set_at: datetime
    set_by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """A named baseline: sweeps of any number of devices and models, by device, the oldest first."""

    name: str
    sweeps: tuple[BaselineSweep, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselinePage:
    """Some baselines, in the order of their names; ``next_cursor`` asks for those after them, None at the end."""

    items: tuple[Baseline, ...]
    next_cursor: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineRequest:
    """Asks for a baseline of these sweeps.

    Attributes:
        sweep_ids: the sweeps; they are finished, and have runs.
        keep: whether the sweeps that are part of it stay. Otherwise those of the same devices and models are replaced;
            those of other devices or models stay either way.
    """

    sweep_ids: tuple[str, ...]
    keep: bool = False
