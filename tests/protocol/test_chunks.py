"""Trace chunks: what goes in comes out, bit for bit, and damage is noticed."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from chunk_joining import join
from powerlab.domain.errors import PowerlabError
from powerlab.domain.power import Trace
from powerlab.protocol.chunks import check, split
from powerlab.protocol.messages import TraceChunk
from powerlab.protocol.wire import decode, encode
from server_examples import RAIL, make_trace


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    count = draw(st.integers(1, 200))
    steps = draw(hnp.arrays(np.int64, count, elements=st.integers(1, 2**40)))
    start = draw(st.integers(-(2**60), 2**60))
    finite = st.floats(-1e15, 1e15)
    value = draw(hnp.arrays(np.float64, count, elements=finite))
    return Trace(rail=RAIL, time_ns=start + np.cumsum(steps), value=value, read_cost_ns=draw(st.integers(0, 2**40)))


@given(traces(), st.integers(1, 64))
def test_a_trace_comes_back_bit_for_bit(trace: Trace, size: int) -> None:
    chunks = [decode(encode(chunk), TraceChunk) for chunk in split(trace, size)]
    back = join(chunks)
    assert np.array_equal(back.time_ns, trace.time_ns)
    assert back.value.tobytes() == trace.value.tobytes()  # -0.0 is not 0.0
    assert (back.rail, back.read_cost_ns) == (trace.rail, trace.read_cost_ns)
    assert [chunk.position for chunk in chunks] == list(range(len(chunks)))


@given(traces())
def test_what_split_makes_passes_the_check(trace: Trace) -> None:
    for chunk in split(trace, 50):
        check(chunk)


@given(traces())
def test_the_summary_is_that_of_the_samples(trace: Trace) -> None:
    (chunk,) = split(trace)
    assert (chunk.t_first_ns, chunk.t_last_ns) == (trace.time_ns[0], trace.time_ns[-1])
    assert (chunk.value_min, chunk.value_max) == (trace.value.min(), trace.value.max())
    assert chunk.sample_count == len(trace.value)


def test_an_empty_trace_has_no_chunks() -> None:
    empty = Trace(rail=RAIL, time_ns=np.empty(0, np.int64), value=np.empty(0))
    assert list(split(empty)) == []


def test_a_slow_signal_compresses() -> None:
    time_ns = np.arange(10_000, dtype=np.int64) * 10_000_000
    value = np.round(np.linspace(5.0, 6.0, 10_000), 2)
    (chunk,) = split(Trace(rail=RAIL, time_ns=time_ns, value=value))
    assert len(chunk.payload_base64) < 16 * 10_000 / 20


@pytest.mark.parametrize(
    ("time_ns", "value"),
    [
        ([1, 1], [1.0, 2.0]),
        ([2, 1], [1.0, 2.0]),
        ([1, 2], [1.0, np.nan]),
        ([1, 2], [1.0, np.inf]),
        ([1, 2], [1.0, 1e16]),
        ([1, 2], [1.0]),
    ],
)
def test_impossible_traces_are_refused(time_ns: list[int], value: list[float]) -> None:
    trace = Trace(rail=RAIL, time_ns=np.array(time_ns), value=np.array(value))
    with pytest.raises(PowerlabError, match="VDD_GPU"):
        list(split(trace))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"sha256": "0" * 64}, "sha256"),
        ({"payload_base64": "?"}, "base64"),
        ({"sample_count": 999}, "samples"),
        ({"sample_count": 0}, "claims 0"),
        ({"sample_count": 10**9}, "claims"),
        ({"t_first_ns": 0}, "times or extremes"),
        ({"value_max": 1e9}, "times or extremes"),
        ({"value_sum": 1e9}, "sum"),
        ({"codec": "gorilla"}, "gorilla"),
    ],
)
def test_a_damaged_chunk_is_refused(change: dict[str, object], words: str) -> None:
    (chunk,) = split(make_trace())
    with pytest.raises(PowerlabError, match=words):
        check(replace(chunk, **change))


def test_bytes_that_are_no_zlib_are_refused() -> None:
    payload = b"not zlib"
    (chunk,) = split(make_trace())
    broken = replace(
        chunk,
        payload_base64=base64.b64encode(payload).decode(),
        sha256=hashlib.sha256(payload).hexdigest(),
    )
    with pytest.raises(PowerlabError, match="damaged"):
        check(broken)
