"""Frames between machines that share a key: what arrives is what was sent, and who does not know the key is told."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from powerlab.signed_frames import receive_exactly, receive_frame, send_frame

Pair = tuple[socket.socket, socket.socket]


@pytest.fixture
def pair() -> Iterator[Pair]:
    one, other = socket.socketpair()
    with one, other:
        other.settimeout(5)
        yield one, other


@pytest.mark.parametrize("data", [b"", b"x", bytes(range(256)) * 10])
def test_what_is_sent_arrives_one_after_the_other(pair: Pair, data: bytes) -> None:
    one, other = pair
    for number in (b"1", b"2"):
        send_frame(one, "key", data, number)
    assert [receive_frame(other, "key", len(data), number) for number in (b"1", b"2")] == [data, data]


@pytest.mark.parametrize(("key", "before"), [("another", b"1"), ("key", b"2"), ("key", b"")])
def test_another_key_or_place_is_told(pair: Pair, key: str, before: bytes) -> None:
    one, other = pair
    send_frame(one, "key", b"data", b"1")
    with pytest.raises(ValueError, match="it does not know the key"):
        receive_frame(other, key, 100, before)


def test_a_message_that_is_too_long_is_not_read(pair: Pair) -> None:
    one, other = pair
    send_frame(one, "key", bytes(101))
    with pytest.raises(ValueError, match="no message is that long"):
        receive_frame(other, "key", 100)


def test_an_end_in_the_middle_is_told(pair: Pair) -> None:
    one, other = pair
    one.sendall(b"abc")
    one.close()
    with pytest.raises(ConnectionResetError, match="it closed the connection"):
        receive_exactly(other, 4)
