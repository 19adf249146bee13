"""An audit of stored runs, on both databases: what is whole, what was changed in a table, and what is not enough."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import delete, update

from powerlab.domain.errors import PowerlabError
from powerlab.domain.run import Verdict
from powerlab.measure.audit.audit import Audit
from powerlab.store import Store
from powerlab.store.errors import NotFoundError
from powerlab.store.reads import queries
from powerlab.store.reads.run_audit import audit_run
from powerlab.store.tables import RailRow, RunMetricRow, RunRow, TraceChunkRow
from recorded_run import POINT, Recorded, recorded_run
from server_examples import PLAN
from store_writing import take, upload, upload_trace


@pytest.fixture
def stored(store: Store, device_id: str, sweep_id: str) -> Recorded:
    point = next(one for one in PLAN.points() if one.threads == POINT.threads and one.workload.batch_size == 4)
    held, recorded = take(store, device_id), recorded_run(sweep_id=sweep_id, point=point)
    upload(store, device_id, held, recorded.run)
    for trace in recorded.traces:
        upload_trace(store, device_id, held, recorded.run.id, trace)
    return recorded


def audited(store: Store, run_id: str) -> Audit:
    with store.session() as session:
        return audit_run(session, run_id)


def change(store: Store, statement: Any) -> None:
    with store.write() as session:
        session.execute(statement)


def differing(store: Store, recorded: Recorded) -> dict[str, str]:
    found = audited(store, recorded.run.id)
    assert not found.equal
    return {one.what: one.detail for one in found.compared if not one.equal}


def test_a_stored_run_gives_itself_again(store: Store, stored: Recorded) -> None:
    found = audited(store, stored.run.id)
    assert found.equal
    assert found.run == stored.run
    assert found.sample_count == sum(trace.time_ns.size for trace in stored.traces)
    assert {"SHA-256 of the run", "samples"} <= {one.what for one in found.compared}
    assert found.mlperf_ruling is not None


def test_a_beginning_names_a_run_where_it_names_one_only(store: Store, stored: Recorded) -> None:
    assert audited(store, stored.run.id[:8]).run.id == stored.run.id
    for nobody in ("", "nobody", "%", "_", f"{stored.run.id}0"):
        with pytest.raises(NotFoundError, match="there is no run"):
            audited(store, nobody)


def test_a_beginning_of_several_runs_is_refused(store: Store, stored: Recorded) -> None:
    other = stored.run.id[:-1] + ("0" if stored.run.id[-1] != "0" else "1")
    with store.write() as session:
        row = session.get_one(RunRow, stored.run.id)
        values = {column.name: getattr(row, column.name) for column in RunRow.__table__.columns}
        session.add(RunRow(**{**values, "id": other, "repeat": 1}))
    with pytest.raises(PowerlabError, match="several runs begin with"):
        audited(store, stored.run.id[:8])
    assert audited(store, stored.run.id).run.id == stored.run.id


@pytest.mark.parametrize("value", [RunMetricRow.value * 0.999, RunMetricRow.value + 0.001])
def test_a_figure_that_was_changed_is_seen_twice(store: Store, stored: Recorded, value: Any) -> None:
    mine = (RunMetricRow.run_id == stored.run.id, RunMetricRow.name == "power_w")
    change(store, update(RunMetricRow).where(*mine).values(value=value))
    found = differing(store, stored)
    assert set(found) == {"SHA-256 of the run", "Power while running"}
    assert found["SHA-256 of the run"] == "the run was changed after it was stored"
    change(store, update(RunRow).values(sha256=digest_of(store, stored.run.id)))
    assert set(differing(store, stored)) == {"Power while running"}


def digest_of(store: Store, run_id: str) -> str:
    """What somebody would write who knows how runs are stored."""
    from powerlab.protocol.wire import digest

    with store.session() as session:
        return digest(queries.run(session, run_id))


def test_a_verdict_that_was_changed_is_seen(store: Store, stored: Recorded) -> None:
    change(store, update(RunRow).values(verdict=Verdict.FLAGGED.value))
    change(store, update(RunRow).values(sha256=digest_of(store, stored.run.id)))
    assert set(differing(store, stored)) == {"verdict"}


def test_what_the_rules_looked_at_cannot_be_changed_unseen(store: Store, stored: Recorded) -> None:
    with store.write() as session:
        row = session.get_one(RunRow, stored.run.id)
        row.conditions = {**(row.conditions or {}), "background_cores": 7.0}
    found = differing(store, stored)
    assert {"SHA-256 of the run", "finding background-load"} <= set(found)
    with store.write() as session:
        row = session.get_one(RunRow, stored.run.id)
        row.conditions = {**(row.conditions or {}), "background_cores": 0.4}
    assert set(differing(store, stored)) == {"SHA-256 of the run"}


def test_a_sensor_that_was_made_better_is_seen(store: Store, stored: Recorded) -> None:
    change(store, update(RailRow).values(relative_error=0.0001))
    assert "Power while running" in differing(store, stored)


def test_a_chunk_that_was_damaged_is_named(store: Store, stored: Recorded) -> None:
    with store.write() as session:
        row = session.query(TraceChunkRow).filter_by(part="run", position=1).first()
        assert row is not None
        key = f"{row.rail.source}:{row.rail.name}"
        row.payload = bytes([row.payload[0] ^ 1]) + row.payload[1:]
    found = audited(store, stored.run.id)
    assert differing(store, stored) == {
        f"samples of {key} (run)": "chunk 1: the chunk's payload does not match its sha256"
    }
    assert (found.mlperf, found.mlperf_ruling, found.sample_count) == ((), None, 0)


@pytest.mark.parametrize("column", ["value_max", "t_first_ns", "value_sum"])
def test_a_chunk_whose_summary_was_changed_is_named(store: Store, stored: Recorded, column: str) -> None:
    values = {column: getattr(TraceChunkRow, column) + (1 if column == "t_first_ns" else 1.0)}
    change(store, update(TraceChunkRow).where(TraceChunkRow.position == 0).values(**values))
    (detail, *_) = differing(store, stored).values()
    assert detail.startswith("chunk 0: the chunk's")


def test_a_chunk_that_is_gone_is_named(store: Store, stored: Recorded) -> None:
    change(store, delete(TraceChunkRow).where(TraceChunkRow.position == 0))
    details = " ".join(differing(store, stored).values())
    assert "chunk 0 is missing" in details


def test_a_last_chunk_that_is_gone_is_seen_in_the_figures(store: Store, stored: Recorded) -> None:
    last = stored.run.window_ns[1]
    change(store, delete(TraceChunkRow).where(TraceChunkRow.t_last_ns >= last, TraceChunkRow.part == "run"))
    assert {"finding missing-power", "verdict"} <= set(differing(store, stored))


def test_a_run_without_latencies_is_refused(store: Store, stored: Recorded) -> None:
    change(store, delete(TraceChunkRow))
    with pytest.raises(PowerlabError, match="latencies of run"):
        audited(store, stored.run.id)


def test_a_run_that_was_made_a_failed_one_was_changed_all_the_same(store: Store, stored: Recorded) -> None:
    change(store, update(RunRow).values(verdict=Verdict.FAILED.value))
    assert set(differing(store, stored)) == {"SHA-256 of the run"}


def test_a_run_from_before_there_were_conditions_is_refused(store: Store, stored: Recorded) -> None:
    change(store, update(RunRow).values(conditions=None))
    with pytest.raises(PowerlabError, match="older powerlab"):
        audited(store, stored.run.id)


def test_a_run_from_before_conditions_had_all_fields_has_no_digest_to_compare(store: Store, stored: Recorded) -> None:
    with store.write() as session:
        row = session.get_one(RunRow, stored.run.id)
        row.conditions = {name: value for name, value in (row.conditions or {}).items() if name != "measured_with"}
    found = audited(store, stored.run.id)
    assert found.equal
    assert "SHA-256 of the run" not in {one.what for one in found.compared}
