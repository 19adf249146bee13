"""What every trace store does, whoever answers questions about them."""

from __future__ import annotations

import base64
import uuid
from dataclasses import replace
from math import inf, nan
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from powerlab.domain.errors import PowerlabError
from powerlab.domain.power import Part, Trace
from powerlab.protocol.chunks import split
from powerlab.protocol.messages import ChunksUpload
from powerlab.store.errors import ConflictError
from powerlab.store.reads import queries
from powerlab.store.reads.decimate import Bucket, decimate
from powerlab.store.traces import parquet
from powerlab.store.traces.base import whole
from powerlab.store.traces.object_storage import open_objects
from powerlab.store.traces.query_engines import open_engine
from powerlab.store.traces.sql import Wanted, decimated, samples
from powerlab.store.traces.table import Block, as_parquet, table_of
from powerlab.store.writes.runs import store_chunks
from server_examples import COUNTER, RAIL, make_trace
from trace_lab import Lab

EVER = (0, 2**63 - 1)
SENT = (
    make_trace(RAIL, 1000),
    make_trace(COUNTER, 500, seed=1),
    replace(make_trace(RAIL, 20, seed=2), part=Part.IDLE_BEFORE),
    replace(make_trace(replace(RAIL, offset=0.1), 400, seed=3), part=Part.IDLE_AFTER),
)


def same(found: Trace, wanted: Trace) -> None:
    assert (found.rail, found.part, found.read_cost_ns) == (wanted.rail, wanted.part, wanted.read_cost_ns)
    assert np.array_equal(found.time_ns, wanted.time_ns)
    assert found.value.tobytes() == wanted.value.tobytes()


def ordered(traces: list[Trace]) -> list[Trace]:
    return sorted(traces, key=lambda one: (one.rail.source, one.rail.name, one.rail.offset, one.part.value))


@pytest.fixture
def sent(lab: Lab) -> Lab:
    for trace in SENT:
        assert all(lab.send(0, trace))
    assert all(lab.send(1, make_trace(RAIL, 50, seed=4)))
    return lab


def test_what_was_sent_comes_back_bit_for_bit_and_in_order(sent: Lab) -> None:
    with sent.store.session() as session:
        pieces = list(sent.traces.scan(session, sent.run_ids[0]))
        found = list(whole(pieces))
        assert list(sent.traces.scan(session, sent.run_ids[2])) == []
    assert [piece.position for piece in pieces if piece.rail == COUNTER] == [0, 1]
    for one, wanted in zip(found, ordered(list(SENT)), strict=True):
        same(one, wanted)


def test_sent_again_it_is_there_already_and_other_bytes_are_refused(sent: Lab) -> None:
    assert not any(sent.send(0, SENT[0]))
    with pytest.raises(ConflictError, match="other bytes"):
        sent.send(0, make_trace(RAIL, 1000, seed=9))
    with sent.store.session() as session:
        assert queries.power_traces(session, sent.run_ids[0])[0].value.tobytes() == SENT[0].value.tobytes()


def test_a_damaged_chunk_is_refused_and_leaves_nothing(lab: Lab) -> None:
    (chunk,) = split(SENT[2])
    wrong = [
        replace(chunk, value_max=1000.0),
        replace(chunk, sha256="0" * 64),
        replace(chunk, payload_base64=base64.b64encode(b"nothing").decode()),
        *(replace(chunk, **{name: number}) for name in ("value_min", "value_sum") for number in (nan, inf)),
        *(replace(chunk, rail=replace(chunk.rail, relative_error=number)) for number in (nan, inf)),
    ]
    good = replace(chunk, position=1)
    for one in wrong:
        upload = ChunksUpload(fencing_token=lab.held.fencing_token, chunks=(good, one))
        with lab.store.write() as session, pytest.raises(PowerlabError):
            store_chunks(session, lab.device_id, lab.run_ids[0], upload)
    with lab.store.session() as session:
        assert list(lab.traces.scan(session, lab.run_ids[0])) == []


def test_a_window_has_both_its_ends(sent: Lab) -> None:
    times = SENT[0].time_ns
    first, last = int(times[350]), int(times[620])
    with sent.store.session() as session:
        found = list(sent.traces.window(session, sent.run_ids[0], first, last))
        assert list(sent.traces.window(session, sent.run_ids[0], -10, -5)) == []
        assert list(sent.traces.window(session, sent.run_ids[0], last + 2**50, last + 2**51)) == []
    inside = [(trace, (trace.time_ns >= first) & (trace.time_ns <= last)) for trace in ordered(list(SENT))]
    wanted = [replace(one, time_ns=one.time_ns[here], value=one.value[here]) for one, here in inside if here.any()]
    assert len(found) == len(wanted) > 1
    for one, other in zip(found, wanted, strict=True):
        same(one, other)


@pytest.mark.parametrize("few", [0, 1 << 20], ids=["by-the-engine", "here"])
def test_few_points_are_those_of_the_reference(sent: Lab, few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "_FEW", few)
    with sent.store.session() as session:
        for points, bucket in ((3, Bucket.MINMAX), (57, Bucket.MINMAX), (57, Bucket.MEAN), (100_000, Bucket.MEAN)):
            found = list(sent.traces.decimate(session, sent.run_ids[0], points, bucket))
            for one, trace in zip(found, ordered(list(SENT)), strict=True):
                wanted = decimate(trace, points, bucket)
                assert np.array_equal(one.time_ns, wanted.time_ns)
                np.testing.assert_allclose(one.value, wanted.value, rtol=1e-12 if bucket is Bucket.MEAN else 0)


def test_few_points_of_a_window_see_the_window_alone(sent: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "_FEW", 0)
    first, last = int(SENT[0].time_ns[100]), int(SENT[0].time_ns[899])
    with sent.store.session() as session:
        limits = {"start_ns": first, "end_ns": last}
        found = list(sent.traces.decimate(session, sent.run_ids[0], 50, Bucket.MINMAX, **limits))
    (one,) = (trace for trace in found if trace.rail == RAIL and trace.part is Part.RUN)
    part = slice(100, 900)
    same(one, decimate(replace(SENT[0], time_ns=SENT[0].time_ns[part], value=SENT[0].value[part]), 50))


STEPS = st.one_of(st.integers(1, 1000), st.integers(1, 2**30))
LEVELS = st.one_of(st.sampled_from([-0.0, 0.0, 1.5]), st.floats(-1e15, 1e15))


@st.composite
def questions(draw: st.DrawFn) -> tuple[list[Trace], int, int, int]:
    """Two rails with gaps and equal values, how many points, and a window."""
    traces = []
    for rail in (RAIL, COUNTER):
        count = draw(st.integers(1, 60))
        steps = draw(hnp.arrays(np.int64, count, elements=STEPS))
        value = draw(hnp.arrays(np.float64, count, elements=LEVELS))
        traces.append(Trace(rail=rail, time_ns=draw(st.integers(0, 2**60)) + np.cumsum(steps), value=value))
    start, end = sorted((draw(st.integers(0, 59)), draw(st.integers(0, 59))))
    times = traces[0].time_ns
    first, last = int(times[min(start, len(times) - 1)]), int(times[min(end, len(times) - 1)])
    return traces, draw(st.integers(2, 40)), first, last


@pytest.mark.campaign
@pytest.mark.parametrize("engine", ["duckdb", "clickhouse"])
def test_engines_answer_as_the_reference_does(request: pytest.FixtureRequest, tmp_path: Path, engine: str) -> None:
    objects = open_objects(f"file://{tmp_path}")
    asked = open_engine(None if engine == "duckdb" else request.getfixturevalue("clickhouse"), objects)

    @settings(
        max_examples=30 if engine == "duckdb" else 5,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(questions())
    def hold(question: tuple[list[Trace], int, int, int]) -> None:
        traces, points, first, last = question
        keys = []
        for number, trace in enumerate(traces):
            half = max(1, len(trace.time_ns) // 2)
            for position, part in enumerate((slice(0, half), slice(half, None))):
                block = Block(
                    run_id="run",
                    rail_id=number,
                    rail=trace.rail,
                    part=Part.RUN,
                    position=position,
                    samples=(trace.time_ns[part], trace.value[part]),
                )
                keys.append(f"{uuid.uuid4().hex}.parquet")
                objects.put(keys[-1], as_parquet(table_of([block])))
        wanted = Wanted(run_id="run", start_ns=first, end_ns=last)
        answers = {
            None: asked.ask(keys, samples(wanted)),
            **{bucket: asked.ask(keys, decimated(wanted, points, bucket)) for bucket in Bucket},
        }
        for number, trace in enumerate(traces):
            inside = (trace.time_ns >= first) & (trace.time_ns <= last)
            cut = replace(trace, time_ns=trace.time_ns[inside], value=trace.value[inside])
            for bucket, answer in answers.items():
                here = answer["rail_id"].to_numpy() == number
                time_ns, value = answer.column(-2).to_numpy()[here], answer.column(-1).to_numpy()[here]
                short = cut if bucket is None or not len(cut.time_ns) else decimate(cut, points, bucket)
                assert np.array_equal(time_ns, short.time_ns)
                if bucket is None:
                    assert value.tobytes() == short.value.tobytes()
                elif bucket is Bucket.MINMAX:
                    assert np.array_equal(value, short.value)  # -0.0 may come back as 0.0
                else:
                    # Sums of values that cancel out lose digits, in whatever order they are added.
                    largest = float(np.abs(cut.value).max(initial=0.0))
                    np.testing.assert_allclose(value, short.value, rtol=1e-12, atol=1e-13 * largest)
        objects.delete(keys)

    hold()
