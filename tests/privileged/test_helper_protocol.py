from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.privileged import protocol
from powerlab.privileged.protocol import (
    Done,
    Failed,
    MakeSetting,
    May,
    OpenFile,
    ProtocolError,
    ReadRegister,
    Refused,
    RunProgram,
    WriteFile,
    decode_reply,
    decode_request,
    encode,
    receive,
    send,
)

TEXTS = st.text(max_size=50)
REQUESTS = st.one_of(
    st.builds(WriteFile, TEXTS, TEXTS),
    st.builds(OpenFile, TEXTS),
    st.builds(RunProgram, TEXTS, st.lists(TEXTS, max_size=3).map(tuple)),
    st.builds(MakeSetting, TEXTS, TEXTS, TEXTS),
    st.builds(ReadRegister, st.integers(0, 2**16), st.integers(0, 2**32)),
    st.builds(May, st.sampled_from(["write", "run", "set"]), TEXTS),
)
REPLIES = st.one_of(st.builds(Done, TEXTS), st.builds(Refused, TEXTS), st.builds(Failed, st.integers(0, 200)))
Pair = tuple[socket.socket, socket.socket]


@pytest.fixture
def pair() -> Iterator[Pair]:
    ends = socket.socketpair()
    yield ends
    for end in ends:
        end.close()


@given(REQUESTS)
def test_a_request_reads_back_as_it_was_sent(request: protocol.Request) -> None:
    data = encode(request)
    assert struct.unpack(">I", data[:4]) == (len(data) - 4,)
    assert decode_request(data[4:]) == request


@given(REPLIES)
def test_a_reply_reads_back_as_it_was_sent(reply: protocol.Reply) -> None:
    assert decode_reply(encode(reply)[4:]) == reply


@given(st.binary(max_size=200) | TEXTS.map(str.encode))
def test_any_bytes_are_a_message_or_refused(body: bytes) -> None:
    for decode in (decode_request, decode_reply):
        try:
            decode(body)
        except ProtocolError:
            continue


@pytest.mark.parametrize(
    "body",
    [
        b'{"type":"write","path":"/a"}',
        b'{"type":"write","path":"/a","value":1}',
        b'{"type":"write","path":"/a","value":"1","more":1}',
        b'{"type":"may","deed":"delete","name":"/a"}',
        b'{"type":"done","text":"x"}',
        b"[]",
        b"\xff",
    ],
)
def test_what_is_nearly_a_request_is_refused(body: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode_request(body)


def test_a_message_travels_with_a_descriptor(pair: Pair) -> None:
    reader, writer = os.pipe()
    send(pair[0], OpenFile("/a"), reader)
    os.close(reader)
    body, received = receive(pair[1], 5)
    assert decode_request(body) == OpenFile("/a")
    assert received is not None
    assert not os.get_inheritable(received)
    os.write(writer, b"x")
    assert os.read(received, 1) == b"x"
    os.close(received)
    os.close(writer)


def test_a_message_may_come_byte_by_byte(pair: Pair) -> None:
    data = encode(WriteFile("/sys/a", "1"))
    for place in range(len(data)):
        pair[0].send(data[place : place + 1])
    body, received = receive(pair[1], 5)
    assert (decode_request(body), received) == (WriteFile("/sys/a", "1"), None)


def test_more_descriptors_than_one_are_not_kept(pair: Pair) -> None:
    before = set(os.listdir("/proc/self/fd"))
    data = encode(OpenFile("/a"))
    for place in range(len(data)):
        socket.send_fds(pair[0], [data[place : place + 1]], [0, 1])
    _, received = receive(pair[1], 5)
    assert received is not None
    os.close(received)
    assert set(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize("data", [b"", b"\0\0", struct.pack(">I", 10) + b"short"])
def test_an_end_within_a_message_is_told_and_keeps_no_descriptor(pair: Pair, data: bytes) -> None:
    before = set(os.listdir("/proc/self/fd"))
    if data:
        socket.send_fds(pair[0], [data], [0])
    pair[0].shutdown(socket.SHUT_WR)
    with pytest.raises(ProtocolError, match="ended within"):
        receive(pair[1], 5)
    assert set(os.listdir("/proc/self/fd")) == before


def test_a_length_beyond_the_bound_is_refused_before_anything_is_read(pair: Pair) -> None:
    pair[0].send(struct.pack(">I", protocol.MAX_MESSAGE_BYTES + 1))
    with pytest.raises(ProtocolError, match="too long"):
        receive(pair[1], 5)
    with pytest.raises(ProtocolError, match="too long"):
        encode(Done("x" * protocol.MAX_MESSAGE_BYTES))


@pytest.mark.parametrize("data", [b"", b"\0\0\0\5abc"])
def test_who_does_not_go_on_is_not_waited_for(pair: Pair, data: bytes) -> None:
    pair[0].send(data or b"\0")
    with pytest.raises(TimeoutError):
        receive(pair[1], 0.01)
    with pytest.raises(TimeoutError):
        receive(pair[1], 0)
