"""What simulated agents upload: one run as six rails give it, made once; nothing is measured here."""

from __future__ import annotations

import uuid
from dataclasses import replace

from powerlab.domain.run import Run
from powerlab.domain.sweep import Point, SweepPlan
from powerlab.protocol.chunks import split
from powerlab.protocol.messages import TraceChunk
from recorded_run import rail, recorded_run

RAILS = 6
PLAN = SweepPlan(models=("resnet50",), threads=(1,), duration_s=5.0)
"""Three runs a job."""

_RECORDED = recorded_run(rails=tuple(rail(f"RAIL_{number}") for number in range(RAILS)), window_s=5.0)
CHUNKS: tuple[TraceChunk, ...] = tuple(chunk for trace in _RECORDED.traces for chunk in split(trace))
"""Rails, idle baselines and latencies of a run of 5 s."""
SAMPLES = sum(chunk.sample_count for chunk in CHUNKS)


def new_run(sweep_id: str, point: Point, repeat: int) -> Run:
    """Return the run as a repeat of a point, under an identifier of its own."""
    return replace(_RECORDED.run, id=str(uuid.uuid4()), sweep_id=sweep_id, point=point, repeat=repeat)
