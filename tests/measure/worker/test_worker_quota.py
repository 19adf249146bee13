"""A worker is put into the quota's group before it loads anything."""

from __future__ import annotations

import pytest

from powerlab.domain.errors import PowerlabError
from powerlab.domain.power import TotalFormula
from powerlab.domain.sweep import SweepPlan
from powerlab.measure import run
from powerlab.measure.recording.rails import Meter
from powerlab.measure.run import RunRequest, measure_run
from powerlab.measure.worker.process import Worker
from powerlab.sysroot import Sysroot

pytestmark = pytest.mark.usefixtures("fakes")


def request_in(sysroot: Sysroot) -> RunRequest:
    plan = SweepPlan(models=("good",), threads=(1,), batch_sizes=(1,))
    return RunRequest(
        sweep_id="s",
        plan=plan,
        point=plan.points()[0],
        repeat=0,
        meter=Meter(sysroot=sysroot, total=TotalFormula(rails=(), scope="none"), rails=(), sample_period_s=0.01),
        idle=None,
        drifted=lambda: None,
    )


def test_the_worker_joins_before_it_is_asked_for_anything(tmp_path, monkeypatch):
    steps: list[object] = []
    monkeypatch.setattr(run, "join", lambda sysroot, pid: steps.append((sysroot, pid)))

    def load(worker: Worker, request: object) -> None:
        steps.append(worker.pid)
        raise PowerlabError("far enough")

    monkeypatch.setattr(Worker, "load", load)
    with pytest.raises(PowerlabError, match="far enough"):
        measure_run(request_in(Sysroot(tmp_path)))
    assert steps == [(Sysroot(tmp_path), steps[1]), steps[1]]


def test_a_worker_that_cannot_join_is_not_measured_without_its_quota(tmp_path, monkeypatch):
    def refuse(sysroot: Sysroot, pid: int) -> None:
        raise PowerlabError("the group does not take it")

    monkeypatch.setattr(run, "join", refuse)
    monkeypatch.setattr(Worker, "load", lambda worker, request: pytest.fail("it was used all the same"))
    with pytest.raises(PowerlabError, match="does not take it"):
        measure_run(request_in(Sysroot(tmp_path)))
