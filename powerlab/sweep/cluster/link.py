"""The connection between the first device of a cluster and another one: requests of the first, and their answers.

Frames have a length, an HMAC-SHA256 and a msgpack message; each frame's HMAC covers the number of frames before it and
what the other side drew when the connection was made, so that none can be sent again. Nothing is encrypted.
"""

from __future__ import annotations

import os
import select
import socket
import struct
import threading
from contextlib import suppress
from typing import Any, TypeVar

import msgspec
import numpy as np

from powerlab.domain.place import Place
from powerlab.domain.power import Part, Rail, Trace
from powerlab.domain.sweep import Point, SweepPlan
from powerlab.signed_frames import receive_exactly, receive_frame, send_frame

ANSWER_S = 30.0
"""How long an answer may take that needs no loading."""
_NONCE_BYTES = 32
_LONGEST_BYTES = 1 << 30
_KEEP_ALIVE = ((socket.TCP_KEEPIDLE, 10), (socket.TCP_KEEPINTVL, 5), (socket.TCP_KEEPCNT, 3))
"""A machine without power is gone after 25 s."""


class Hello(msgspec.Struct, tag=True, frozen=True, kw_only=True):
    """From another device: what it is called, and how its power is read; no rails where it cannot be."""

    name: str
    version: str
    rails: tuple[Rail, ...]
    scope: str
    lively: dict[str, float]


class Clock(msgspec.Struct, tag=True, frozen=True, kw_only=True):
    """To another device: what does CLOCK_MONOTONIC say?"""


class Now(msgspec.Struct, tag=True, frozen=True, kw_only=True):
    """From another device: that."""

    time_ns: int


class Begin(msgspec.Struct, tag=True, frozen=True, kw_only=True):
    """To another device: load a point, meet the others where this connection leads, and follow."""

    plan: SweepPlan
    point: Point
    place: Place


class Record(msgspec.Struct, tag=True, frozen=True, kw_only=True):
    """To another device: begin to record power, temperature and throttling."""


class Finish(msgspec.Struct, tag=True, frozen=True, kw_only=True):
    """To another device: end recording, and send what there is."""


class End(msgspec.Struct, tag=True, frozen=True, kw_only=True):
    """To another device: the run is over."""


class Done(msgspec.Struct, tag=True, frozen=True, kw_only=True):
    """From another device: done; or, in a sentence, why not."""

    failure: str = ""


class Samples(msgspec.Struct, tag=True, frozen=True, kw_only=True):
    """From another device: one rail's samples, as little-endian int64 and float64."""

    rail: Rail
    time_ns: bytes
    value: bytes
    read_cost_ns: int

    @classmethod
    def of(cls, trace: Trace) -> Samples:
        """Return a trace as a message holds it."""
        times, values = trace.time_ns.astype("<i8").tobytes(), trace.value.astype("<f8").tobytes()
        return cls(rail=trace.rail, time_ns=times, value=values, read_cost_ns=trace.read_cost_ns)

    def trace(self) -> Trace:
        """Return the trace."""
        times = np.frombuffer(self.time_ns, "<i8").astype(np.int64)
        values = np.frombuffer(self.value, "<f8").astype(np.float64)
        return Trace(rail=self.rail, time_ns=times, value=values, read_cost_ns=self.read_cost_ns, part=Part.RUN)


class Recording(msgspec.Struct, tag=True, frozen=True, kw_only=True):
    """From another device: what it recorded, with the meanings of :class:`powerlab.measure.nodes.Recorded`."""

    rails: tuple[Samples, ...]
    zones: tuple[Samples, ...]
    throttled: tuple[str, ...]
    failure: str | None
    drift: str | None
    background_cores: float | None


Message = Hello | Clock | Now | Begin | Record | Finish | End | Done | Recording
Answer = TypeVar("Answer", Hello, Now, Done, Recording)
_decoder: msgspec.msgpack.Decoder[Message] = msgspec.msgpack.Decoder(Message)


class LinkError(Exception):
    """The other side is gone, or is somebody else; the text says so in words."""


class Link:
    """One end of a connection.

    Args:
        connection: connected; it is closed with the link.
        key: a secret that both sides have.

    Raises:
        LinkError: the other side is gone.
    """

    def __init__(self, connection: socket.socket, key: str) -> None:
        self._socket, self._key = connection, key
        self._sent = self._got = 0
        self._asking = threading.Lock()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in _KEEP_ALIVE:
            connection.setsockopt(socket.IPPROTO_TCP, option, value)
        self._own = os.urandom(_NONCE_BYTES)
        connection.settimeout(ANSWER_S)
        try:
            connection.sendall(self._own)
            self._theirs = receive_exactly(connection, _NONCE_BYTES)
        except OSError as error:
            raise LinkError(_words(error)) from error

    @property
    def peer(self) -> str:
        """The other side's address."""
        return str(self._socket.getpeername()[0])

    def ask(self, request: Message, kind: type[Answer], timeout_s: float = ANSWER_S) -> Answer:
        """Send a request and return its answer; any thread may.

        Raises:
            LinkError: there is none.
        """
        with self._asking:
            self.send(request)
            answer = self.receive(timeout_s)
        if not isinstance(answer, kind):
            raise LinkError(f"it answers with {type(answer).__name__}")
        return answer

    def send(self, message: Message) -> None:
        """Send a message; raises LinkError."""
        data = msgspec.msgpack.encode(message)
        try:
            self._socket.settimeout(ANSWER_S)
            send_frame(self._socket, self._key, data, _covered(self._theirs, self._sent))
        except OSError as error:
            raise LinkError(_words(error)) from error
        self._sent += 1

    def receive(self, timeout_s: float | None) -> Message:
        """Wait for a message; raises LinkError."""
        try:
            self._socket.settimeout(timeout_s)
            data = receive_frame(self._socket, self._key, _LONGEST_BYTES, _covered(self._own, self._got))
            self._got += 1
            return _decoder.decode(data)
        except (OSError, ValueError) as error:  # what msgspec cannot read is a ValueError, too
            raise LinkError(_words(error)) from error

    def is_gone(self, wait_s: float) -> bool:
        """Wait for a while, and say whether the other side has closed the connection."""
        poll = select.poll()
        poll.register(self._socket, select.POLLRDHUP)
        return bool(poll.poll(wait_s * 1000))

    def close(self) -> None:
        """Close it; who waits for a message learns of it."""
        with suppress(OSError):  # the other side was quicker
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


def _covered(nonce: bytes, number: int) -> bytes:
    """Return what a frame's HMAC covers besides its data."""
    return nonce + struct.pack("<Q", number)


def _words(error: Exception) -> str:
    return (getattr(error, "strerror", None) or str(error)).rstrip(".")


def question(link: Link, read_ns: Any) -> tuple[int, int, int]:
    """Ask for the other side's clock; return the middle of the exchange, the offset to this one, and its length in ns.

    Args:
        link: to the other side.
        read_ns: reads this side's clock.
    """
    begin_ns = read_ns()
    theirs_ns = link.ask(Clock(), Now).time_ns
    end_ns = read_ns()
    middle_ns = (begin_ns + end_ns) // 2
    return middle_ns, middle_ns - theirs_ns, end_ns - begin_ns
