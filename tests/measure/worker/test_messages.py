"""Frames survive the way there, and garbage is recognised."""

from __future__ import annotations

import io

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.domain.workload import Preparation, Scenario, Workload
from powerlab.measure.worker.messages import (
    LENGTH,
    Load,
    Measure,
    Ready,
    Timed,
    WarmUp,
    decode_reply,
    encode,
    read_request,
)

requests = st.one_of(
    st.builds(
        Load,
        backend_module=st.text(),
        workload=st.builds(
            Workload,
            model=st.text(),
            batch_size=st.integers(1, 1024),
            scenario=st.sampled_from(Scenario),
            preparation=st.sampled_from(Preparation),
            latency_bound_ms=st.floats(0, 1e6),
        ),
        threads=st.integers(1, 256),
        sysroot=st.text(),
        seed=st.integers(0, 2**63 - 1),
        spin_us=st.none() | st.integers(0, 10**6),
    ),
    st.builds(WarmUp, duration_s=st.floats(0, 1e6)),
    st.builds(Measure, duration_s=st.floats(0, 1e6), min_inferences=st.integers(1, 10**6), margin_s=st.floats(0, 10)),
    st.builds(
        Measure,
        duration_s=st.floats(0, 1e6),
        min_inferences=st.integers(1, 10**6),
        margin_s=st.floats(0, 10),
        queries_per_s=st.floats(0, 1e6),
        arrival_seed=st.lists(st.integers(0, 2**31), max_size=4).map(tuple),
    ),
)


@given(messages=st.lists(requests))
def test_requests_come_out_as_they_went_in(messages):
    stream = io.BytesIO(b"".join(map(encode, messages)))
    for message in messages:
        assert read_request(stream) == message
    assert read_request(stream) is None


@given(start=st.binary(), end=st.binary())
def test_replies_come_out_as_they_went_in(start, end):
    for reply in (Timed(start_ns=start, end_ns=end), Ready(inference_s=0.25)):
        frame = encode(reply)
        assert LENGTH.unpack(frame[: LENGTH.size])[0] == len(frame) - LENGTH.size
        assert decode_reply(frame[LENGTH.size :]) == reply


@given(payload=st.binary(max_size=200))
def test_garbage_is_an_error_of_one_kind(payload):
    try:
        reply = decode_reply(payload)
    except msgspec.MsgspecError:
        return
    assert encode(reply)


def test_a_request_is_no_reply():
    with pytest.raises(msgspec.MsgspecError):
        decode_reply(encode(WarmUp(duration_s=1.0))[LENGTH.size :])
