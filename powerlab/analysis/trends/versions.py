"""What software and settings a sweep was measured with, and in what two of them differ."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from powerlab.domain.model_name import short, stored_model
from powerlab.domain.run import Run

UNKNOWN = "unknown"
_JOINED = ", "


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """What was one thing before and is another after; ``unknown`` where no run tells."""

    what: str
    before: str
    after: str

    def __str__(self) -> str:
        """Return ``kernel: 5.10.104 → 5.10.120``."""
        return f"{self.what}: {self.before} → {self.after}"


def versions(runs: Iterable[Run]) -> Mapping[str, str]:
    """Return titles and what the runs say of them; what none of them tells is left out.

    A sweep in which something changed half-way has both values, in the order of their text.
    """
    found: dict[str, set[str]] = {}
    for run in runs:
        for title, text in _of_run(run):
            if text:
                found.setdefault(title, set()).add(text)
    return {title: _JOINED.join(sorted(texts)) for title, texts in found.items()}


def differences(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[Difference, ...]:
    """Return in what two sweeps differ, in the order of the titles."""
    titles = dict.fromkeys((*before, *after))
    pairs = ((title, before.get(title, UNKNOWN), after.get(title, UNKNOWN)) for title in titles)
    return tuple(Difference(what=title, before=one, after=other) for title, one, other in pairs if one != other)


def _of_run(run: Run) -> Iterator[tuple[str, str]]:
    workload = run.point.workload
    model = stored_model(workload.model)
    if model is not None:
        yield f"model {model.name}", short(workload.model)
    conditions = run.conditions
    if conditions is None:
        return
    yield f"engine {workload.engine}", conditions.engine_version
    yield "powerlab", conditions.measured_with
    state = conditions.device_state
    if state is None:
        return
    yield "kernel", " ".join(filter(None, (state.kernel, state.kernel_build)))
    yield "JetPack (L4T)", state.l4t_release
    yield "firmware", state.firmware
    yield "microcode", state.microcode
    yield "graphics drivers", _JOINED.join(state.drivers)
    for clock in (*state.cpu_clocks, *state.device_clocks):
        yield f"governor of {clock.name} in mode {run.point.mode}", clock.governor
