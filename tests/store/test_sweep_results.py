"""Summaries of sweeps that are over are kept, and are at any time what the runs say, on both databases."""

from __future__ import annotations

import math
import threading
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select, update
from sqlalchemy.exc import OperationalError

from powerlab.analysis.best import best_points, contenders
from powerlab.analysis.searched import in_contest
from powerlab.analysis.summary import METHOD, PointSummary, summarise
from powerlab.domain.quantity import Metric, Provenance
from powerlab.domain.run import Run, Verdict
from powerlab.protocol.messages import Finish, Lease, SweepRequest
from powerlab.protocol.records import SweepState
from powerlab.store import Store
from powerlab.store.errors import NotFoundError
from powerlab.store.maintenance import summary_worker
from powerlab.store.maintenance.summary_worker import kept_summed, sum_up
from powerlab.store.reads import queries
from powerlab.store.reads.answers import stored_answers
from powerlab.store.reads.sweep_results import (
    packed,
    runs_of_points,
    summaries_of_sweep,
    unpacked,
    verdicts_of_sweep,
)
from powerlab.store.tables import JobRow, RunRow, SweepSummaryRow
from powerlab.store.writes import control
from powerlab.store.writes.jobs import finish
from powerlab.store.writes.sweeps import create_sweep
from server_examples import PLAN, make_run, runs_of
from statements import statements
from store_writing import take, upload


@pytest.fixture
def held(store: Store, device_id: str, sweep_id: str) -> Lease:
    return take(store, device_id)


@pytest.fixture
def runs(store: Store, device_id: str, sweep_id: str, held: Lease) -> list[Run]:
    """Return the runs of a sweep that goes on, all but the last of them stored."""
    made = runs_of(sweep_id)
    for run in made[:-1]:
        upload(store, device_id, held, run)
    return made


def end(store: Store, device_id: str, held: Lease) -> None:
    with store.write() as session:
        finish(
            session, device_id, held.job_id, Finish(fencing_token=held.fencing_token, state=SweepState.DONE),
            store.clock(),
        )  # fmt: skip


def read(store: Store, sweep_id: str) -> tuple[PointSummary, ...]:
    with store.session() as session:
        return summaries_of_sweep(session, sweep_id)


def kept(store: Store) -> SweepSummaryRow | None:
    with store.session() as session:
        return session.scalar(select(SweepSummaryRow))


def test_a_sweep_that_goes_on_is_summarised_as_it_stands(store: Store, sweep_id: str, runs: list[Run]) -> None:
    assert read(store, sweep_id) == summarise(runs[:-1])
    assert sum_up(store) == 0
    assert kept(store) is None


def test_one_that_is_over_is_summarised_once(store: Store, device_id: str, held: Lease, runs: list[Run]) -> None:
    end(store, device_id, held)
    assert (sum_up(store), sum_up(store)) == (1, 0)
    row = kept(store)
    assert row is not None
    assert (row.method, row.run_count) == (METHOD, len(runs) - 1)
    with statements(store) as asked:
        assert read(store, held.sweep_id) == summarise(runs[:-1])
    assert not any("run_metric" in one for one in asked)


def test_its_answers_are_kept_with_them(store: Store, device_id: str, held: Lease, runs: list[Run]) -> None:
    def kept_answers() -> list[tuple[str, Metric, str]]:
        with store.session() as session:
            found = stored_answers(session, [held.sweep_id]).get(held.sweep_id, ())
        return [(one.goal, one.metric, one.statement) for one in found]

    assert kept_answers() == []
    end(store, device_id, held)
    sum_up(store)
    best = best_points(summarise(runs[:-1]), runs[:-1])
    assert best
    assert kept_answers() == [(one.goal, one.metric, one.statement) for one in best]
    with store.write() as session:  # as an earlier powerlab left it
        session.execute(update(SweepSummaryRow).values(answers=None))
    assert kept_answers() == []
    assert (sum_up(store), sum_up(store)) == (1, 0)
    assert len(kept_answers()) == len(best)


def test_of_a_search_the_answers_compare_the_points_that_it_did_not_give_up(store: Store, device_id: str) -> None:
    plan = replace(PLAN, search_percent=1.0)
    with store.write() as session:
        sweep_id = create_sweep(session, SweepRequest(device_id=device_id, plan=plan), store.clock())
    held, given_up = take(store, device_id), plan.points()[0]
    made = [run for run in runs_of(sweep_id, plan) if run.point != given_up or run.repeat == 0]
    for run in made:
        upload(store, device_id, held, run)
    end(store, device_id, held)
    sum_up(store)
    with store.session() as session:
        said = [(one.goal, one.statement) for one in stored_answers(session, [sweep_id])[sweep_id]]
    compared = in_contest(summarise(made), plan)
    assert given_up not in {summary.point for summary in compared}
    assert said == [(best.goal, best.statement) for best in best_points(compared, made)]
    assert said != [(best.goal, best.statement) for best in best_points(summarise(made), made)]


def test_a_run_that_comes_late_is_seen_at_once_and_summarised_again(
    store: Store, device_id: str, held: Lease, runs: list[Run]
) -> None:
    with store.write() as session:
        control.cancel(session, held.sweep_id, by="ann", now=store.clock())
    assert sum_up(store) == 1
    assert upload(store, device_id, held, runs[-1])
    assert kept(store) is None
    assert read(store, held.sweep_id) == summarise(runs)
    assert sum_up(store) == 1
    assert read(store, held.sweep_id) == summarise(runs)


def test_the_same_run_again_leaves_them_be(store: Store, device_id: str, held: Lease, runs: list[Run]) -> None:
    end(store, device_id, held)
    sum_up(store)
    assert not upload(store, device_id, held, runs[0])
    assert kept(store) is not None


def test_summaries_of_other_runs_than_there_are_do_not_count(
    store: Store, device_id: str, held: Lease, runs: list[Run]
) -> None:
    end(store, device_id, held)
    sum_up(store)
    with store.write() as session:
        session.execute(update(SweepSummaryRow).values(run_count=SweepSummaryRow.run_count - 1, document=packed(())))
    assert read(store, held.sweep_id) == summarise(runs[:-1])


@pytest.mark.parametrize("method", [METHOD - 1, METHOD + 1])
def test_summaries_by_another_method_do_not_count_and_an_earlier_one_is_replaced(
    store: Store, device_id: str, held: Lease, runs: list[Run], method: int
) -> None:
    end(store, device_id, held)
    sum_up(store)
    with store.write() as session:
        session.execute(update(SweepSummaryRow).values(method=method, document=packed(())))
    assert read(store, held.sweep_id) == summarise(runs[:-1])
    assert sum_up(store) == (method < METHOD)
    row = kept(store)
    assert row is not None
    assert row.method == max(METHOD, method)
    assert read(store, held.sweep_id) == summarise(runs[:-1])


def test_a_sweep_without_runs_has_no_summaries_and_one_that_is_not_there_says_so(
    store: Store, device_id: str, held: Lease
) -> None:
    assert read(store, held.sweep_id) == ()
    end(store, device_id, held)
    assert (sum_up(store), sum_up(store)) == (1, 0)
    assert read(store, held.sweep_id) == ()
    with pytest.raises(NotFoundError, match="there is no sweep 'elsewhere'"):
        read(store, "elsewhere")


def test_whoever_is_adding_to_a_sweep_is_not_waited_for(
    store: Store, device_id: str, held: Lease, runs: list[Run]
) -> None:
    if store.engine.dialect.name == "sqlite":
        return  # its writers follow one another, whatever they write
    end(store, device_id, held)
    with store.write() as session:
        session.scalar(select(JobRow).with_for_update())
        assert sum_up(store) == 0
    assert sum_up(store) == 1


def test_a_server_keeps_them_at_once_and_again(
    store: Store, device_id: str, held: Lease, runs: list[Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds, failed = [threading.Event(), threading.Event()], threading.Event()
    real, waiting = summary_worker.sum_up, iter(rounds)

    def counted(of: Store, **how: float) -> int:
        count = real(of, **how)
        if count:
            next(waiting).set()
        return count

    monkeypatch.setattr(summary_worker, "sum_up", counted)
    monkeypatch.setattr(summary_worker._log, "warning", lambda *_: failed.set())
    with store.write() as session:
        control.cancel(session, held.sweep_id, by="ann", now=store.clock())
    with kept_summed(store, period_s=0.01):
        assert rounds[0].wait(60)
        upload(store, device_id, held, runs[-1])
        assert rounds[1].wait(60)
        monkeypatch.setattr(summary_worker, "sum_up", _away)
        assert failed.wait(60)
    assert read(store, held.sweep_id) == summarise(runs)


def _away(*_: object, **__: object) -> int:
    raise OperationalError("SELECT", {}, Exception("the database is away"))


def test_verdicts_are_counted_the_most_frequent_first(
    store: Store, device_id: str, held: Lease, runs: list[Run]
) -> None:
    failed = replace(runs[-1], metrics=(), total=None, inference_count=0, verdict=Verdict.FAILED)
    upload(store, device_id, held, failed)
    with store.session() as session:
        found = verdicts_of_sweep(session, held.sweep_id)
        assert list(found.items()) == [(Verdict.FLAGGED, len(runs) - 1), (Verdict.FAILED, 1)]
        assert verdicts_of_sweep(session, "elsewhere") == {}


def test_the_runs_of_some_points_come_in_plan_order(store: Store, held: Lease, runs: list[Run]) -> None:
    points = {runs[0].point, runs[-1].point}
    with store.session() as session:
        found = runs_of_points(session, held.sweep_id, points)
        assert found == [run for run in runs[:-1] if run.point in points]
        assert runs_of_points(session, held.sweep_id, ()) == []
        assert runs_of_points(session, "elsewhere", points) == []


def test_the_runs_of_the_contenders_are_enough_to_say_how_sure_the_best_is(
    store: Store, device_id: str, sweep_id: str, held: Lease
) -> None:
    made = [
        make_run(sweep_id, run.point, run.repeat, speed=20 * run.point.threads + run.point.workload.batch_size + index)
        for index, run in enumerate(runs_of(sweep_id))
    ]
    for run in made:
        upload(store, device_id, held, run)
    with store.session() as session:
        summaries = summaries_of_sweep(session, sweep_id)
        compared = runs_of_points(session, sweep_id, contenders(summaries))
        assert len(compared) == len(made), "every point of one work is a rival"
        assert best_points(summaries, compared) == best_points(summaries, queries.runs_of_sweep(session, sweep_id))


def test_they_go_with_their_sweep(store: Store, device_id: str, held: Lease) -> None:
    end(store, device_id, held)
    sum_up(store)
    with store.write() as session:
        for row in (session.scalar(select(JobRow)), *session.scalars(select(RunRow))):
            session.delete(row)
        session.flush()
        for table in ("point", "sweep"):
            session.connection().exec_driver_sql(f"DELETE FROM {table}")
    assert kept(store) is None


_numbers = st.floats(allow_nan=False)


@given(value=_numbers, low=st.none() | _numbers, high=st.none() | _numbers)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_float_survives_packing(value: float, low: float | None, high: float | None) -> None:
    (summary,) = summarise([make_run("sweep", runs_of("sweep")[0].point, 0)])
    metric = Metric(name="power_w", value=value, low=low, high=high, provenance=Provenance.ESTIMATED)
    summary = replace(summary, metrics=(metric, replace(metric, value=math.inf, low=-math.inf)))
    assert unpacked(packed((summary,))) == (summary,)
