"""The worker's side of the talk, without a process: requests in, replies out."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest

from powerlab.domain.workload import Workload
from powerlab.measure.messages import LENGTH, Broken, Load, Measure, Ready, Refused, Timed, WarmUp, decode_reply, encode
from powerlab.measure.worker import serve


@pytest.fixture(autouse=True)
def fake_backends(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parent / "fakes"))


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
