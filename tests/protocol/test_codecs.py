"""Codecs of trace chunks: every sample comes back bit for bit, what was written stays readable, damage is noticed."""

from __future__ import annotations

import zlib
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from powerlab.domain.errors import PowerlabError
from powerlab.protocol.codecs import decode, delta_zlib, encode, prediction, rice, steps_rice
from powerlab.protocol.codecs.steps import Form, find_step, from_whole, to_whole

ANY_INT64 = st.integers(-(2**63), 2**63 - 1)
COUNTS = st.integers(1, 300)
ODD_VALUES = [0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, 1e308, 2.0**53, -(2.0**53) - 2, 1e15, 0.1 + 0.2]
CODECS = {"delta-zlib-1": delta_zlib, "steps-rice-1": steps_rice}


@st.composite
def columns(draw: st.DrawFn) -> NDArray[np.int64]:
    """Any 64-bit integers; or some that are nearly regular, with jumps."""
    count = draw(COUNTS)
    if draw(st.booleans()):
        return draw(hnp.arrays(np.int64, count, elements=ANY_INT64))
    start, slope = draw(ANY_INT64), draw(st.integers(-(2**40), 2**40))
    noise = draw(hnp.arrays(np.int64, count, elements=st.integers(-1000, 1000)))
    jumps = draw(hnp.arrays(np.int64, count, elements=st.sampled_from([0] * 20 + [1, 2**33, -(2**62)])))
    return np.int64(start) + np.arange(count, dtype=np.int64) * slope + noise + np.cumsum(jumps)


@st.composite
def values(draw: st.DrawFn) -> NDArray[np.float64]:
    """Any 64 bits taken as floats, odd ones among readings, or whole steps of a unit."""
    count = draw(COUNTS)
    if draw(st.booleans()):
        return draw(hnp.arrays(np.int64, count, elements=ANY_INT64)).view(np.float64)
    whole = draw(hnp.arrays(np.int64, count, elements=st.integers(-(10**6), 10**6))).astype(np.float64)
    unit = draw(st.sampled_from([1e-6, 1e-3, 0.192, 0.008, 6.1e-5]))
    value = whole / round(1 / unit) if draw(st.booleans()) else whole * unit
    if draw(st.booleans()):
        value[draw(st.integers(0, count - 1))] = draw(st.sampled_from(ODD_VALUES))
    return value


def same(one: NDArray[np.float64], other: NDArray[np.float64]) -> bool:
    """Whether every bit is the same: -0.0 is not 0.0, and what is not a number has a payload."""
    return one.tobytes() == other.tobytes() and one.dtype == other.dtype


@given(columns(), values(), st.sampled_from([0.0, 0.192, 0.008, 1e-300, np.inf, np.nan, -1.0]))
def test_samples_come_back_bit_for_bit(time_ns: NDArray[np.int64], value: NDArray[np.float64], hint: float) -> None:
    count = min(len(time_ns), len(value))
    time_ns, value = time_ns[:count], value[:count]
    name, payload = encode(time_ns, value, hint)
    ways = {name: payload} | {name: codec.encode(time_ns, value, hint) for name, codec in CODECS.items()}
    for name, payload in ways.items():
        back_ns, back = decode(payload, name, count)
        assert np.array_equal(back_ns, time_ns)
        assert back_ns.dtype == np.int64
        assert same(back, value)
    assert len(payload) >= len(encode(time_ns, value, hint)[1])


@given(columns())
def test_columns_come_back(column: NDArray[np.int64]) -> None:
    assert np.array_equal(prediction.unpack(prediction.pack(column), len(column)), column)


@given(hnp.arrays(np.uint64, st.integers(0, 200), elements=st.integers(0, 2**64 - 1).map(lambda n: n >> (n % 64))))
def test_rice_codes_come_back(numbers: NDArray[np.uint64]) -> None:
    packed = rice.pack(numbers)
    assert np.array_equal(rice.unpack(packed, len(numbers)), numbers)
    assert len(packed) <= rice.most_bytes(len(numbers))


@pytest.mark.parametrize(
    ("reading", "form"),
    [
        (lambda whole: whole * 1e-6, Form.TIMES),
        (lambda whole: whole * 1e-3, Form.TIMES),
        (lambda whole: whole / 1e3, Form.BY),
        (lambda whole: np.array([float(f"{one / 100:.2f}") for one in whole.tolist()]), Form.BY),
        (lambda whole: whole * 0.1923, Form.TIMES),
        (lambda whole: np.sqrt(np.abs(whole) + 2), Form.BITS),
    ],
)
def test_a_sensors_step_is_found(reading: Callable[[NDArray[np.float64]], NDArray[np.float64]], form: Form) -> None:
    whole = np.random.default_rng(1).integers(-5000, 5000, 400).astype(np.float64) * 24
    value = reading(whole)
    step = find_step(value, 0.1923)
    assert step.form is form
    assert same(from_whole(to_whole(value, step), step), value)
    if form is not Form.BITS:
        assert np.abs(to_whole(value, step)).max() <= 5000


def samples(count: int, step_w: float) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """A kilohertz, each reading up to some µs late, and noise of some steps around 12 W."""
    dice = np.random.default_rng(5)
    time_ns = 10**12 + np.arange(count) * 1_000_000 + dice.integers(0, 4096, count)
    return time_ns, np.round(dice.normal(12.0, 4 * step_w, count) / step_w) * step_w


@pytest.mark.parametrize("count", [600, 20_000])
def test_readings_take_little_more_than_their_noise(count: int) -> None:
    time_ns, value = samples(count, 0.192)
    name, payload = encode(time_ns, value, 0.192)
    assert name == "steps-rice-1"
    noise_bits = 12 + np.log2(4 * np.sqrt(2 * np.pi * np.e))  # of a uniform lateness and a normal reading
    assert noise_bits * count / 8 < len(payload) < (noise_bits + 1) * count / 8 + 80
    assert len(payload) < len(delta_zlib.encode(time_ns, value, 0.192)) / 2


def test_a_gap_costs_little() -> None:
    time_ns, value = samples(2000, 0.192)
    gapped = time_ns.copy()
    gapped[700:] += 3_600_000_000_000
    gapped[1500:] += 17
    assert len(encode(gapped, value, 0.0)[1]) < len(encode(time_ns, value, 0.0)[1]) * 1.1


def test_what_repeats_takes_next_to_nothing() -> None:
    time_ns = np.arange(60_000, dtype=np.int64) * 10_000_000
    assert len(encode(time_ns, np.full(60_000, 4.2), 0.0)[1]) < 300


def test_a_value_without_a_step_takes_the_shorter_way() -> None:
    dice = np.random.default_rng(2)
    time_ns, value = np.arange(1000) * 10**7, np.exp(dice.normal(size=1000))
    name, payload = encode(time_ns, value, 0.0)
    assert len(payload) == min(len(codec.encode(time_ns, value, 0.0)) for codec in CODECS.values())
    assert same(decode(payload, name, 1000)[1], value)


WRITTEN = {
    "delta-zlib-1": (
        "789cfbcdf33365ceff53274fedfe3f6bd6ac05ffadadad53ff3330303082080604f18b81ed97651d4363dd962c86a959"
        "27f63038ef292b61e82ed937992167f2fc1302ea27b2ec190ed8330000b73e212e"
    ),
    "steps-rice-1": (
        "789c63620082d4b3671d1936147283d84a40ccf8fb3f04a49c9a650d126413169e75042451f0883b8409c46064800018"
        "cdcac4c5c0ce040064eb10e4"
    ),
}
"""Chunks as they were once written: whoever changes a codec gives it a new name."""


@pytest.mark.parametrize("name", WRITTEN)
def test_what_was_once_written_can_be_read(name: str) -> None:
    time_ns, value = decode(bytes.fromhex(WRITTEN[name]), name, 5)
    assert time_ns.tolist() == [-5, 1_000_000_007, 2_000_000_000, 3_000_000_100, 9_000_000_000]
    assert value.tolist() == [0.192, 0.384, 0.0, 0.192, 19.2]


@given(st.sampled_from(list(CODECS)), st.integers(0, 10**6), st.integers(0, 255), st.sampled_from([50, 51, 1, 60_000]))
def test_a_damaged_payload_never_passes_for_something_worse(name: str, place: int, byte: int, count: int) -> None:
    time_ns, value = samples(50, 0.192)
    data = bytearray(zlib.decompress(CODECS[name].encode(time_ns, value, 0.0)))
    data[place % len(data)] = byte
    for damaged in (zlib.compress(bytes(data)), zlib.compress(bytes(data[: place % len(data)])), bytes(data)):
        try:
            back_ns, back = decode(damaged, name, count)
        except PowerlabError:
            continue  # any other error would be the server's, and fails the test
        assert len(back_ns) == len(back) == count


@pytest.mark.parametrize("name", CODECS)
def test_a_bomb_does_not_unfold(name: str) -> None:
    with pytest.raises(PowerlabError, match="does not hold"):
        decode(zlib.compress(bytes(64 << 20)), name, 10)
