"""The worker's side of the talk, without a process: requests in, replies out."""

from __future__ import annotations

import io
import threading
from pathlib import Path

import numpy as np
import pytest

from powerlab.domain.workload import Preparation, Scenario, Workload
from powerlab.measure.preprocessing import Pictures
from powerlab.measure.worker.main import serve
from powerlab.measure.worker.messages import (
    LENGTH,
    Broken,
    Load,
    Measure,
    Ready,
    Refused,
    Timed,
    WarmUp,
    decode_reply,
    encode,
)


@pytest.fixture(autouse=True)
def fake_backends(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "fakes"))


def load_of(model: str, **changes: object) -> Load:
    workload = Workload(**{"model": model, "batch_size": 1, **changes})
    return Load(backend_module="numpy_backend", workload=workload, threads=1, sysroot="/", seed=7)


def answers(*requests) -> list:
    """Return the replies to requests that all wait in the pipe already."""
    replies = io.BytesIO()
    serve(io.BytesIO(b"".join(encode(request) for request in requests)), replies)
    replies.seek(0)
    found = []
    while head := replies.read(LENGTH.size):
        found.append(decode_reply(replies.read(*LENGTH.unpack(head))))
    return found


def test_a_whole_job_is_loaded_warmed_and_timed():
    ready, warm, timed = answers(
        load_of("good"), WarmUp(duration_s=0.0), Measure(duration_s=0.0, min_inferences=4, margin_s=0.001)
    )
    assert ready == Ready()
    assert isinstance(warm, Ready)
    assert warm.inference_s > 0
    assert isinstance(timed, Timed)
    starts, ends = (np.frombuffer(times, dtype="<i8") for times in (timed.start_ns, timed.end_ns))
    assert starts.size == ends.size == 4
    assert (ends > starts).all()
    assert (starts[1:] >= ends[:-1]).all()


def test_nothing_is_an_end_without_a_reply():
    assert answers() == []


def test_a_request_that_was_cut_off_is_an_end_too():
    replies = io.BytesIO()
    serve(io.BytesIO(encode(load_of("good"))[:2]), replies)
    assert replies.getvalue() == b""


@pytest.mark.parametrize("request_", [WarmUp(duration_s=0.0), Measure(duration_s=0.0, min_inferences=1, margin_s=0.0)])
def test_without_a_model_every_request_is_answered_with_that(request_):
    assert answers(request_) == [Broken(detail="no model is loaded")]


def test_a_refusal_is_the_last_answer():
    (refused,) = answers(load_of("unreadable"), load_of("good"))
    assert isinstance(refused, Refused)
    assert "cannot be read" in refused.sentence


def test_a_fault_of_the_engine_names_its_kind_and_is_the_last_answer():
    many = Measure(duration_s=0.0, min_inferences=20, margin_s=0.0)
    ready, broken = answers(load_of("memory"), many, many, many)
    assert ready == Ready()
    assert isinstance(broken, Broken)
    assert broken.detail.startswith("MemoryError: ")


def times_of(timed: Timed) -> tuple[np.ndarray, np.ndarray]:
    starts, ends = (np.frombuffer(times, dtype="<i8") for times in (timed.start_ns, timed.end_ns))
    return starts, ends


def test_queries_arrive_at_random_where_a_load_is_asked_for():
    server = load_of("good", scenario=Scenario.SERVER, latency_bound_ms=50.0)
    ask = Measure(duration_s=0.0, min_inferences=20, margin_s=0.001, queries_per_s=2000.0, arrival_seed=(3, 1))
    ready, timed, again = answers(server, ask, ask)
    assert ready == Ready()
    (starts, ends), (others, _) = times_of(timed), times_of(again)
    assert starts.size == 20
    last_latency_ns, span_ns = (ends - starts)[-1], starts[-1] - starts[0]
    assert last_latency_ns >= 20e6 - span_ns > 5e6, "a worker of 1000 queries/s falls behind 2000"
    assert np.array_equal(np.diff(starts), np.diff(others)), "the same seed brings the same arrivals"


def test_eight_images_take_as_many_inferences_as_their_batches():
    ask = Measure(duration_s=0.0, min_inferences=3, margin_s=0.0)
    for batch_size in (1, 8):  # the fake takes 1 ms an image
        _, timed = answers(load_of("good", scenario=Scenario.MULTI_STREAM, batch_size=batch_size), ask)
        starts, ends = times_of(timed)
        assert ((ends - starts) >= 8e6).all()


def test_slices_are_run_and_ended():
    before = threading.active_count()
    ready, timed = answers(
        load_of("good", batch_size=4, slices=4), Measure(duration_s=0.0, min_inferences=3, margin_s=0.0)
    )
    assert ready == Ready()
    assert times_of(timed)[0].size == 3
    assert threading.active_count() == before


def test_pictures_for_a_model_that_takes_none_are_refused_when_it_is_loaded():
    (refused,) = answers(load_of("good", preparation=Preparation.INSIDE))
    assert isinstance(refused, Refused)
    assert refused.sentence.endswith("but good takes 'x' float32 [1, 64]; leave the preparation outside.")


def test_every_query_prepares_its_pictures_where_that_is_timed(monkeypatch):
    prepared = []
    monkeypatch.setattr(Pictures, "prepared", lambda self: prepared.append(self) or np.zeros((2, 3, 8, 8), np.float32))
    ready, _ = answers(
        load_of("pictures", batch_size=2, preparation=Preparation.INSIDE),
        Measure(duration_s=0.0, min_inferences=5, margin_s=0.0),
    )
    assert ready == Ready()
    assert len(prepared) == 5
