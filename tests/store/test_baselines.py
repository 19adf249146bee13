"""Baselines and trends, on both databases: a name stands for sweeps of any number of devices and models."""

from __future__ import annotations

import uuid
from dataclasses import replace

import pytest
from sqlalchemy import select, text
from sqlalchemy.exc import IntegrityError

from powerlab.domain.errors import PowerlabError
from powerlab.domain.run import Run
from powerlab.domain.sweep import SweepPlan
from powerlab.protocol.baselines import BaselineRequest
from powerlab.protocol.messages import Finish, RunUpload, SweepRequest
from powerlab.store import Store
from powerlab.store.errors import NotFoundError
from powerlab.store.reads.baselines import baseline, list_baselines
from powerlab.store.reads.trends import read_trends
from powerlab.store.tables import AuditEventRow
from powerlab.store.writes.baselines import put_baseline, remove_baseline
from powerlab.store.writes.jobs import finish, lease
from powerlab.store.writes.runs import store_run
from powerlab.store.writes.sweeps import create_sweep
from tests.analysis.paired_runs import sweep as paired

RESNET = SweepPlan(models=("resnet50",), threads=(1,))


def measured(store: Store, device_id: str, rate: float = 100.0, model: str = "resnet50", seed: int = 0) -> str:
    """Return a finished sweep of that device."""
    plan = replace(RESNET, models=(model,))
    with store.write() as session:
        sweep_id = create_sweep(session, SweepRequest(device_id=device_id, plan=plan), store.clock())
        session.flush()
        held = lease(session, device_id, store.clock())
        truth = dict.fromkeys(plan.points(), (rate, 10.0))
        for run in paired(truth, sweep_id=sweep_id, seed=seed, scatter=0.001):
            named: Run = replace(run, id=str(uuid.uuid4()), started_at=store.clock().isoformat())
            upload = RunUpload(fencing_token=held.fencing_token, run=named)
            store_run(session, device_id, upload, store.clock())
        finish(session, device_id, held.job_id, Finish(fencing_token=held.fencing_token, state="done"), store.clock())
    store.clock.forward(3600)
    return sweep_id


def put(store: Store, name: str, *sweep_ids: str, keep: bool = False) -> None:
    with store.write() as session:
        put_baseline(session, name, BaselineRequest(sweep_ids=sweep_ids, keep=keep), "ada", store.clock())


def members(store: Store, name: str) -> list[str]:
    with store.session() as session:
        return [one.sweep_id for one in baseline(session, name).sweeps]


def test_a_baseline_is_replaced_for_its_device_and_model_alone(store: Store, device_id: str, other_id: str) -> None:
    first, second, third = (measured(store, device_id) for _ in range(3))
    vgg, elsewhere = measured(store, device_id, model="vgg16"), measured(store, other_id)
    put(store, "main", first, second)
    put(store, "main", vgg)
    put(store, "main", elsewhere)
    assert members(store, "main") == [first, second, vgg, elsewhere]
    put(store, "main", third)
    assert members(store, "main") == [third, vgg, elsewhere]
    put(store, "main", third, first, keep=True)
    assert members(store, "main") == [first, third, vgg, elsewhere]


def test_a_baseline_says_whose_it_is_and_who_set_it(store: Store, device_id: str) -> None:
    sweep_id = measured(store, device_id)
    put(store, "main", sweep_id)
    put(store, "release-1.2", sweep_id)
    with store.session() as session:
        found = list_baselines(session)
        assert [one.name for one in found] == ["main", "release-1.2"]
        assert [one.name for one in list_baselines(session, after="main", limit=1)] == ["release-1.2"]
        said = session.scalars(select(AuditEventRow.action).where(AuditEventRow.actor == "ada")).all()
    (member,) = found[0].sweeps
    assert (member.device_name, member.models, member.set_by) == ("board-1", ("resnet50",), "ada")
    assert said == ["set baseline", "set baseline"]


def test_a_baseline_that_is_removed_leaves_its_sweeps(store: Store, device_id: str) -> None:
    sweep_id = measured(store, device_id)
    put(store, "main", sweep_id)
    with store.write() as session:
        remove_baseline(session, "main", "ada", store.clock())
    with pytest.raises(NotFoundError, match="no baseline 'main'"):
        members(store, "main")
    put(store, "main", sweep_id)
    with pytest.raises(NotFoundError, match="no baseline 'other'"), store.write() as session:
        remove_baseline(session, "other", "ada", store.clock())


def test_what_cannot_be_a_baseline_is_refused(store: Store, device_id: str, sweep_id: str) -> None:
    with pytest.raises(PowerlabError, match="at least one sweep"):
        put(store, "main")
    with pytest.raises(PowerlabError, match="not a valid baseline name"):
        put(store, "a b", sweep_id)
    with pytest.raises(NotFoundError, match="there is no sweep 'nothing'"):
        put(store, "main", "nothing")
    with pytest.raises(PowerlabError, match="is queued; a baseline takes sweeps that are over"):
        put(store, "main", sweep_id)
    with store.session() as session:
        assert list_baselines(session) == []


def test_a_sweep_that_never_ran_is_no_baseline(store: Store, device_id: str, sweep_id: str) -> None:
    with store.write() as session:
        held = lease(session, device_id, store.clock())
        finish(session, device_id, held.job_id, Finish(fencing_token=held.fencing_token, state="failed"), store.clock())
    with pytest.raises(PowerlabError, match="has no runs"):
        put(store, "main", sweep_id)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE baseline_sweep SET name = ''",
        "UPDATE baseline_sweep SET sweep_id = 'nothing'",
        "INSERT INTO baseline_sweep SELECT * FROM baseline_sweep",
    ],
)
def test_the_database_itself_refuses_nonsense(store: Store, device_id: str, statement: str) -> None:
    put(store, "main", measured(store, device_id))
    with pytest.raises(IntegrityError), store.write() as session:
        session.execute(text(statement))


def test_trends_are_of_the_models_name_and_of_one_device(store: Store, device_id: str, other_id: str) -> None:
    rates = [100.0] * 6 + [90.0] * 6
    ids = [measured(store, device_id, rate, seed=seed) for seed, rate in enumerate(rates)]
    measured(store, device_id, model="resnet50-other")
    measured(store, other_id)
    with store.session() as session:
        (trend,) = read_trends(session, "resnet50", ["throughput_img_per_s"], device_id=device_id)
        both = read_trends(session, "resnet50", ["throughput_img_per_s"])
        newest = read_trends(session, "resnet50", ["throughput_img_per_s"], device_id=device_id, most=3)
        assert read_trends(session, "nothing", ["throughput_img_per_s"]) == ()
        with pytest.raises(NotFoundError):
            read_trends(session, "resnet50", ["throughput_img_per_s"], device_id="nothing")
    assert [value.sweep_id for value in trend.values] == ids
    (change,) = trend.changes
    assert (change.last_before, change.first_after) == (ids[5], ids[6])
    assert change.low <= 0.9 <= change.high
    assert sorted(one.device for one in both) == ["board-1", "board-2"]
    assert [value.sweep_id for value in newest[0].values] == ids[-3:]
