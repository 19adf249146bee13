"""Runs and traces: stored once, read back equal."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest
from alembic import command
from sqlalchemy import inspect, text, update
from sqlalchemy.exc import IntegrityError

from powerlab.analysis.summary import summarise
from powerlab.domain.errors import PowerlabError
from powerlab.domain.quantity import Metric, Provenance
from powerlab.domain.run import Run, Verdict
from powerlab.protocol.messages import Finish, SweepRequest
from powerlab.store import Store
from powerlab.store.database import changing_tables
from powerlab.store.errors import ConflictError, NotFoundError
from powerlab.store.reads import queries
from powerlab.store.reads.decimate import Bucket
from powerlab.store.schema import alembic_config
from powerlab.store.tables.runs import RunRow
from powerlab.store.traces.base import trace_store
from powerlab.store.writes import jobs
from powerlab.store.writes.sweeps import create_sweep
from server_examples import COUNTER, PLAN, RAIL, Clock, make_run, make_trace, runs_of
from store_writing import take, upload, upload_trace


def test_runs_come_back_equal_and_in_plan_order(store: Store, device_id: str, sweep_id: str) -> None:
    held, runs = take(store, device_id), runs_of(sweep_id)
    for run in reversed(runs):
        assert upload(store, device_id, held, run)
    with store.session() as session:
        assert queries.runs_of_sweep(session, sweep_id) == runs
        assert queries.run(session, runs[3].id) == runs[3]
        record = queries.sweep(session, sweep_id)
    assert record.stored_run_count == record.planned_run_count == len(runs) == 24
    assert record.plan == PLAN
    assert len(summarise(runs)) == len(PLAN.points())


def test_a_failed_run_without_figures_comes_back_equal(store: Store, device_id: str, sweep_id: str) -> None:
    run = replace(
        runs_of(sweep_id)[0], metrics=(), total=None, window_ns=(0, 0), inference_count=0, verdict=Verdict.FAILED
    )
    upload(store, device_id, take(store, device_id), run)
    with store.session() as session:
        assert queries.run(session, run.id) == run


def test_uploading_again_changes_nothing(store: Store, device_id: str, sweep_id: str) -> None:
    held, run = take(store, device_id), runs_of(sweep_id)[0]
    assert [upload(store, device_id, held, run) for _ in range(3)] == [True, False, False]
    with store.session() as session:
        assert queries.runs_of_sweep(session, sweep_id) == [run]


def test_other_content_under_the_same_id_is_refused(store: Store, device_id: str, sweep_id: str) -> None:
    held, run = take(store, device_id), runs_of(sweep_id)[0]
    upload(store, device_id, held, run)
    with pytest.raises(ConflictError, match="different content"):
        upload(store, device_id, held, replace(run, inference_count=1))
    with store.session() as session:
        assert queries.run(session, run.id) == run


def test_a_repeat_is_stored_once(store: Store, device_id: str, sweep_id: str) -> None:
    held, run = take(store, device_id), runs_of(sweep_id)[0]
    upload(store, device_id, held, run)
    with pytest.raises(ConflictError, match="stored already"):
        upload(store, device_id, held, make_run(sweep_id, run.point, run.repeat))


def _metric(**fields: object) -> Metric:
    return Metric(**{"name": "power_w", "value": 5.0, "provenance": Provenance.MEASURED, **fields})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"metrics": (_metric(name="charm"),)}, "charm"),
        ({"metrics": (_metric(low=6.0, high=7.0),)}, "misses"),
        ({"metrics": (_metric(low=4.0),)}, "misses"),
        ({"metrics": (_metric(), _metric())}, "twice"),
        ({"repeat": -1}, "impossible"),
        ({"window_ns": (2, 1)}, "impossible"),
    ],
)
def test_nonsense_is_one_sentence(
    store: Store, device_id: str, sweep_id: str, change: dict[str, object], words: str
) -> None:
    with pytest.raises(PowerlabError, match=words):
        upload(store, device_id, take(store, device_id), replace(runs_of(sweep_id)[0], **change))


def test_a_point_of_another_plan_is_refused(store: Store, device_id: str, sweep_id: str) -> None:
    stray = replace(PLAN.points()[0], threads=3)
    with pytest.raises(PowerlabError, match="not part of the sweep"):
        upload(store, device_id, take(store, device_id), make_run(sweep_id, stray, 0))


def _stored(store: Store, device_id: str, sweep_id: str) -> tuple[Run, object]:
    held, run = take(store, device_id), runs_of(sweep_id)[0]
    upload(store, device_id, held, run)
    return run, held


def test_traces_come_back_bit_for_bit(store: Store, device_id: str, sweep_id: str) -> None:
    run, held = _stored(store, device_id, sweep_id)
    wanted = [make_trace(RAIL), make_trace(COUNTER, seed=1)]
    for trace in wanted:
        assert upload_trace(store, device_id, held, run.id, trace) == [True] * 4
        assert upload_trace(store, device_id, held, run.id, trace) == [False] * 4
    with store.session() as session:
        found = queries.power_traces(session, run.id)
    assert [trace.rail for trace in found] == [RAIL, COUNTER]
    for trace, original in zip(found, wanted, strict=True):
        assert np.array_equal(trace.time_ns, original.time_ns)
        assert trace.value.tobytes() == original.value.tobytes()
        assert trace.read_cost_ns == original.read_cost_ns


def test_other_samples_in_the_same_place_are_refused(store: Store, device_id: str, sweep_id: str) -> None:
    run, held = _stored(store, device_id, sweep_id)
    upload_trace(store, device_id, held, run.id, make_trace(seed=1))
    with pytest.raises(ConflictError, match="other bytes"):
        upload_trace(store, device_id, held, run.id, make_trace(seed=2))


def test_a_window_and_a_short_version(store: Store, device_id: str, sweep_id: str) -> None:
    run, held = _stored(store, device_id, sweep_id)
    trace = make_trace()
    upload_trace(store, device_id, held, run.id, trace)
    start, end = int(trace.time_ns[350]), int(trace.time_ns[620])
    with store.session() as session:
        traces = trace_store(session)
        (part,) = traces.window(session, run.id, start, end)
        (short,) = traces.decimate(session, run.id, 50, Bucket.MINMAX)
        assert list(traces.window(session, run.id, -10, -5)) == []
    assert np.array_equal(part.value, trace.value[350:621])
    assert len(short.value) <= 50
    assert short.value.max() == trace.value.max()


def test_a_trace_without_its_run_is_not_found(store: Store, device_id: str, sweep_id: str) -> None:
    held = take(store, device_id)
    with pytest.raises(NotFoundError, match="before its traces"):
        upload_trace(store, device_id, held, "nonsense", make_trace())


def test_runs_are_filtered_and_paged(store: Store, clock: Clock, device_id: str, sweep_id: str) -> None:
    held, runs = take(store, device_id), runs_of(sweep_id)[:7]
    for run in runs:
        upload(store, device_id, held, run)
        clock.forward(0.25)
    with store.session() as session:
        seen: list[Run] = []
        after = None
        while page := list(queries.stream_runs(session, queries.RunFilter(sweep_id=sweep_id, limit=3, after=after))):
            seen += [run for _, run in page]
            after = (page[-1][0], page[-1][1].id)
        assert seen == runs
        flagged = queries.RunFilter(verdict=Verdict.FLAGGED, model="resnet50", device_id=device_id)
        assert len(list(queries.stream_runs(session, flagged))) == 7
        for nothing in ({"verdict": Verdict.VALID}, {"model": "alexnet"}, {"device_id": "x"}, {"sweep_id": "x"}):
            assert list(queries.stream_runs(session, queries.RunFilter(**nothing))) == []


@pytest.mark.parametrize(
    "ask", [queries.run, queries.sweep, queries.device, queries.runs_of_sweep, queries.power_traces]
)
def test_what_is_not_there_is_said(store: Store, ask: object) -> None:
    with store.session() as session, pytest.raises(NotFoundError, match="nonsense"):
        ask(session, "nonsense")


def test_figures_of_power_of_several_provenances_are_refused(store: Store, device_id: str, sweep_id: str) -> None:
    mixed = (_metric(), _metric(name="energy_per_image_j", provenance=Provenance.ESTIMATED))
    with pytest.raises(PowerlabError, match="come from one place; these are estimated and measured"):
        upload(store, device_id, take(store, device_id), replace(runs_of(sweep_id)[0], metrics=mixed))


COPIES = text(
    "SELECT count(*) FROM run JOIN sweep ON sweep.id = run.sweep_id JOIN point ON point.id = run.point_id "
    "JOIN power_mode ON power_mode.id = point.power_mode_id "
    "JOIN device_snapshot ON device_snapshot.id = sweep.snapshot_id "
    "WHERE run.device_id = sweep.device_id AND run.workload_id = point.workload_id AND run.threads = point.threads "
    "AND run.mode = power_mode.name AND run.simulated = device_snapshot.simulated "
    "AND run.power_provenance = 'measured'"
)
SAME_TIMES = text(
    "SELECT count(*) FROM run_metric "
    "JOIN run ON run.id = run_metric.run_id AND run.received_at = run_metric.received_at"
)


def test_what_runs_are_looked_for_by_is_what_it_was_copied_from(store: Store, device_id: str, sweep_id: str) -> None:
    held = take(store, device_id)
    for run in runs_of(sweep_id):
        upload(store, device_id, held, run)
    for again in ("0012", "head"):
        with store.session() as session:
            assert session.scalar(COPIES) == 24
            assert session.scalar(SAME_TIMES) == 4 * 24
        if again != "head":
            with changing_tables(store.engine) as connection:
                command.downgrade(alembic_config(connection), again)
                assert "threads" not in {one["name"] for one in inspect(connection).get_columns("run")}
                command.upgrade(alembic_config(connection), "head")


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE run SET device_id = 'another'",
        "UPDATE run SET threads = 77",
        "UPDATE run SET power_provenance = 'rumour'",
        "UPDATE run_metric SET received_at = '2020-01-01 00:00:00'",
    ],
)
def test_the_database_holds_the_copies(store: Store, device_id: str, sweep_id: str, statement: str) -> None:
    _stored(store, device_id, sweep_id)
    with pytest.raises(IntegrityError), store.write() as session:
        session.execute(text(statement))


def test_runs_of_a_model_that_came_late_are_found_behind_all_others(
    store: Store, clock: Clock, device_id: str, sweep_id: str
) -> None:
    held = take(store, device_id)
    for run in runs_of(sweep_id)[:4]:
        upload(store, device_id, held, run)
        clock.forward(60)
    with store.write() as session:
        request = SweepRequest(device_id=device_id, plan=replace(PLAN, models=("alexnet",)), priority=1)
        late_id = create_sweep(session, request, store.clock())
    with store.write() as session:
        jobs.finish(session, device_id, held.job_id, Finish(fencing_token=held.fencing_token, state="done"), clock())
    held, late = take(store, device_id), runs_of(late_id, replace(PLAN, models=("alexnet",)))[:3]
    for run in late:
        upload(store, device_id, held, run)
        clock.forward(60)
    with store.session() as session:
        request = queries.RunFilter(model="alexnet", limit=2)
        first = list(queries.stream_runs(session, request))
        assert [run for _, run in first] == late[:2]
        rest = queries.stream_runs(session, replace(request, after=(first[-1][0], first[-1][1].id)))
        assert [run for _, run in rest] == late[2:]
        assert list(queries.stream_runs(session, replace(request, received_to=clock() - timedelta(hours=1)))) == []


def test_measured_power_of_a_simulated_board_is_found_though_it_is_hardly_ever_there(
    store: Store, device_id: str, sweep_id: str
) -> None:
    held = take(store, device_id)
    runs = runs_of(sweep_id)[:4]
    for run in runs:
        upload(store, device_id, held, run)
    told = ((True, "measured"), (True, "simulated"), (False, "simulated"), (False, "measured"))
    with store.write() as session:
        for run, (simulated, provenance) in zip(runs, told, strict=True):
            change = update(RunRow).where(RunRow.id == run.id)
            session.execute(change.values(simulated=simulated, power_provenance=provenance))
    with store.session() as session:
        for run, (simulated, provenance) in zip(runs, told, strict=True):
            request = queries.RunFilter(simulated=simulated, provenance=Provenance(provenance))
            assert [found.id for _, found in queries.stream_runs(session, request)] == [run.id]
        odd = queries.RunFilter(simulated=True, provenance=Provenance.ESTIMATED)
        assert list(queries.stream_runs(session, odd)) == []
