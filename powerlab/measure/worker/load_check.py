"""Check that an engine can load a model here, by loading it once in a worker."""

from __future__ import annotations

from powerlab.backends.registry import backend_module
from powerlab.domain.errors import PowerlabError
from powerlab.domain.sweep import Point
from powerlab.measure.run import worker_cores
from powerlab.measure.worker.messages import Load
from powerlab.measure.worker.process import Worker, WorkerError


def refusal(point: Point, sysroot: str, seed: int) -> str | None:
    """Return why a point's engine cannot run its model here, in a sentence; None where it can."""
    request = Load(
        backend_module=backend_module(point.workload.engine, point.workload.kind),
        workload=point.workload,
        threads=point.threads,
        sysroot=sysroot,
        seed=seed,
        spin_us=point.spin_us,
    )
    try:
        with Worker(worker_cores(point)) as worker:
            worker.load(request)
    except (PowerlabError, WorkerError) as error:
        return str(error)
    return None
