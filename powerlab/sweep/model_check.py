"""Whether the models of a plan load and run, before anything is measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from powerlab.domain.errors import PowerlabError, TooLargeError
from powerlab.domain.sweep import Point, SweepPlan
from powerlab.domain.workload import Workload
from powerlab.measure.recording.rails import Meter
from powerlab.measure.run import load_request, worker_cores
from powerlab.measure.worker.process import Worker, WorkerError


@dataclass(frozen=True, slots=True)
class ModelCheck:
    """What came of loading every model once.

    Attributes:
        inference_s: by point id, how long an inference takes in s, about: that of the one that was tried, shared by
            more threads; 0 where none was.
        too_large: by model and batch size, why the memory does not hold it, in a sentence.
    """

    inference_s: Mapping[str, float] = field(default_factory=dict)
    too_large: Mapping[tuple[str, int], str] = field(default_factory=dict)

    @property
    def words(self) -> str:
        """Which runs will fail, in sentences; empty where none is known to."""
        return " ".join(
            f"Runs of {model} in batches of {batch_size} will fail: {why}"
            for (model, batch_size), why in self.too_large.items()
        )


def check_models(plan: SweepPlan, meter: Meter, model_files: Mapping[str, str]) -> ModelCheck:
    """Load every model once at every batch size, in a worker, and try it.

    A worker that crashes here says nothing yet: its runs will be recorded as failed. So will those of a model or batch
    that the memory does not hold, if it holds another one of the plan.

    Raises:
        PowerlabError: a model cannot be read or run, or none fits into memory, with the reason.
    """
    tried: dict[Workload, tuple[int, float]] = {}
    too_large: dict[Workload, TooLargeError] = {}
    for point in plan.points():
        kind = _kind(point)
        if kind in tried:
            continue
        tried[kind] = (point.threads, 0.0)
        try:
            with Worker(worker_cores(point)) as worker:
                worker.load(load_request(point, meter, plan.seed, model_files))
                tried[kind] = (point.threads, _query_s(worker, point))
        except TooLargeError as error:
            too_large[kind] = error
        except WorkerError:
            continue
    if tried and too_large.keys() == tried.keys():
        raise next(iter(too_large.values()))
    return ModelCheck(
        {
            point.id: inference_s * threads / point.threads
            for point in plan.points()
            for threads, inference_s in (tried[_kind(point)],)
        },
        {(kind.model, kind.batch_size): str(error) for kind, error in too_large.items()},
    )


def _query_s(worker: Worker, point: Point) -> float:
    """Return how long a query takes, about; 0 where a loss is no number any more, of which the runs will tell."""
    try:
        worker.warm_up(0.0)  # the first one touches its memory for the first time
        return worker.warm_up(0.0)
    except TooLargeError:
        raise
    except PowerlabError:
        if point.workload.trains:
            return 0.0
        raise


def _kind(point: Point) -> Workload:
    """Return what of a point decides whether its model can be loaded, and how long a query takes."""
    return replace(point.workload, latency_bound_ms=0.0)
