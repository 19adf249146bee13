"""Whether a file looks like an ONNX model, from its outermost fields."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onnx_bytes import field, onnx_like, varint
from powerlab.domain.errors import PowerlabError
from powerlab.protocol.onnx_outline import check_outline
from small_network import write_small_network


def check(data: bytes) -> list[tuple[int, int]]:
    """Check a file; returns what of it was read."""
    asked: list[tuple[int, int]] = []

    def read(start: int, count: int) -> bytes:
        asked.append((start, count))
        return data[start : start + count]

    check_outline(read, len(data))
    return asked


def test_a_real_model_passes(tmp_path: Path) -> None:
    check(write_small_network(tmp_path / "small.onnx").read_bytes())


def test_little_of_a_large_model_is_read() -> None:
    asked = check(onnx_like(5_000_000))
    assert sum(count for _, count in asked) < 200


@given(st.integers(0, 400))
def test_a_file_that_ends_early_is_refused(size: int) -> None:
    data = onnx_like(500)
    with pytest.raises(PowerlabError, match="no ONNX model"):
        check(data[:size])


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"PK\x03\x04 a zip file, as PyTorch writes them", "no ONNX model"),
        (b"\x89PNG\r\n\x1a\n" + bytes(50), "no ONNX model"),
        (b"{}", "no ONNX model"),
        (varint(1 << 3) + varint(8) + field(8, b""), "lacks the graph"),
        (field(7, b"") + field(8, b""), "lacks the version"),
        (varint(1 << 3) + varint(8) + field(7, b""), "lacks the operator set"),
        (field(1, b"8") + field(7, b"") + field(8, b""), "another type"),
        (varint(1 << 3) + varint(8) + varint(7 << 3) + varint(1), "another type"),
        (b"\x80" * 30, "inside a number"),
        (varint(9 << 3 | 6), "wire type 6"),
        (varint(9 << 3) + varint(1) + b"\x01", "no ONNX model"),
        ((varint(9 << 3) + varint(1)) * 10_001, "more than 10000"),
    ],
)
def test_other_files_are_refused(data: bytes, words: str) -> None:
    with pytest.raises(PowerlabError, match=words):
        check(data)


@given(st.binary(max_size=200))
def test_any_bytes_pass_or_are_refused_in_a_sentence(data: bytes) -> None:
    with suppress(PowerlabError):  # anything else would fail the test
        check(data)
