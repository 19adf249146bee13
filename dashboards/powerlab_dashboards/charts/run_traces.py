"""A run with what was recorded around it, and the parts of its time that a chart shades."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from powerlab.domain.power import Part, Trace
from powerlab.domain.run import Run
from powerlab_dashboards.language import mark


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunTraces:
    """A run with its traces in every part: rails, idle baselines, latencies, temperatures, clocks.

    Attributes:
        run: the run.
        traces: what was recorded, or of it what lies around ``span_s``.
        retired: why the traces were deleted; empty where they were not.
        span_s: the part of the time axis to show, in s since the timed window began; None for all of it.
    """

    run: Run
    traces: tuple[Trace, ...]
    retired: str = ""
    span_s: tuple[float, float] | None = None

    @property
    def origin_ns(self) -> int:
        """Time 0 of the charts: the start of the timed window, or of the first trace of a run without one."""
        first = min((int(trace.time_ns[0]) for trace in self.traces if len(trace.time_ns)), default=0)
        return self.run.window_ns[0] or first


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """A part of a run's time, in s since the timed window began; its name is in English, and in the catalogue."""

    name: str
    start_s: float
    end_s: float

    @property
    def length_s(self) -> float:
        """How long it lasted."""
        return self.end_s - self.start_s


def phases(run: Run, traces: Sequence[Trace] = ()) -> Iterator[Phase]:
    """Yield the phases of a run whose times are known, in order; an older run may not say when it warmed up.

    A cool-down is where one was recorded among ``traces``.
    """
    conditions, (start_ns, end_ns) = run.conditions, run.window_ns
    known = (
        (mark("cool-down"), _span_ns(traces, Part.COOL_DOWN)),
        (mark("idle"), conditions.idle_before_ns if conditions else None),
        (mark("warm-up"), conditions.warm_up_ns if conditions else None),
        (mark("timed"), run.window_ns if end_ns > start_ns else None),
        (mark("idle"), conditions.idle_after_ns if conditions else None),
    )
    for name, span_ns in known:
        if span_ns is not None:
            yield Phase(name=name, start_s=(span_ns[0] - start_ns) / 1e9, end_s=(span_ns[1] - start_ns) / 1e9)


def _span_ns(traces: Sequence[Trace], part: Part) -> tuple[int, int] | None:
    """Return the first and last time that was recorded in a part; None where nothing was."""
    times_ns = [trace.time_ns for trace in traces if trace.part is part and len(trace.time_ns)]
    return (min(int(one[0]) for one in times_ns), max(int(one[-1]) for one in times_ns)) if times_ns else None
