"""What is said to the privileged helper: one request and one reply a connection, JSON behind a length of four bytes.

A descriptor may travel beside a message (SCM_RIGHTS, unix(7)): with a request the lock of the process that sets modes,
with a reply the file that was opened. Both ends bound what they read in bytes and in time, and believe nothing.
"""

from __future__ import annotations

import os
import socket
import struct
import time
from collections.abc import Sequence
from typing import Literal

import msgspec

SOCKET = "/run/powerlab/helper.sock"
"""Where the helper listens, as seen from inside the sysroot."""
MAX_MESSAGE_BYTES = 64 * 1024
_LENGTH = struct.Struct(">I")
_DESCRIPTOR = struct.Struct("i")


class WriteFile(msgspec.Struct, frozen=True, tag="write", forbid_unknown_fields=True):
    """Write one value to a file of the list."""

    path: str
    value: str


class OpenFile(msgspec.Struct, frozen=True, tag="open", forbid_unknown_fields=True):
    """Open a file of the list read-only; the descriptor comes with the reply."""

    path: str


class RunProgram(msgspec.Struct, frozen=True, tag="run", forbid_unknown_fields=True):
    """Run a program of the list; the reply holds what it printed."""

    program: str
    arguments: tuple[str, ...]


class Reboot(msgspec.Struct, frozen=True, tag="reboot", forbid_unknown_fields=True):
    """Run a program of the list that asks whether to reboot, and answer yes; the reply holds what it printed."""

    program: str
    arguments: tuple[str, ...]


class MakeSetting(msgspec.Struct, frozen=True, tag="set", forbid_unknown_fields=True):
    """Make a setting of the list with its knob's own code."""

    knob: str
    target: str
    value: str


class ReadRegister(msgspec.Struct, frozen=True, tag="register", forbid_unknown_fields=True):
    """Read a model-specific register of the list on one processor; the reply holds it as a decimal integer."""

    cpu: int
    register: int


class May(msgspec.Struct, frozen=True, tag="may", forbid_unknown_fields=True):
    """Ask whether the list has a file to write, a program to run, or any setting of a knob to make."""

    deed: Literal["write", "run", "set"]
    name: str


Request = WriteFile | OpenFile | RunProgram | Reboot | MakeSetting | ReadRegister | May


class Done(msgspec.Struct, frozen=True, tag="done", forbid_unknown_fields=True):
    """It is done; ``text`` is what there is to say."""

    text: str = ""


class Refused(msgspec.Struct, frozen=True, tag="refused", forbid_unknown_fields=True):
    """It is not on the list, or the device does not take it; one sentence says which."""

    sentence: str


class Failed(msgspec.Struct, frozen=True, tag="failed", forbid_unknown_fields=True):
    """A system call failed on a file of the list; ``number`` is its errno."""

    number: int


Reply = Done | Refused | Failed

_REQUESTS: msgspec.json.Decoder[Request] = msgspec.json.Decoder(Request)
_REPLIES: msgspec.json.Decoder[Reply] = msgspec.json.Decoder(Reply)


class ProtocolError(ValueError):
    """What came is no message."""


def encode(message: Request | Reply) -> bytes:
    """Return a message as it travels.

    Raises:
        ProtocolError: it is longer than the other end would read.
    """
    body = msgspec.json.encode(message)
    if len(body) > MAX_MESSAGE_BYTES:
        raise ProtocolError(f"a message of {len(body)} bytes is too long")
    return _LENGTH.pack(len(body)) + body


def decode_request(body: bytes) -> Request:
    """Return the request that stands behind a length.

    Raises:
        ProtocolError: it is none.
    """
    try:
        return _REQUESTS.decode(body)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise ProtocolError(str(error)) from None


def decode_reply(body: bytes) -> Reply:
    """Return the reply that stands behind a length.

    Raises:
        ProtocolError: it is none.
    """
    try:
        return _REPLIES.decode(body)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise ProtocolError(str(error)) from None


def send(connection: socket.socket, message: Request | Reply, descriptor: int | None = None) -> None:
    """Send a message, with a descriptor beside it.

    Raises:
        ProtocolError: it is too long.
        OSError: the other end is gone or does not read.
    """
    data = encode(message)
    sent = socket.send_fds(connection, [data], [] if descriptor is None else [descriptor])
    if sent < len(data):  # sending nothing would still fail where the other end has read all and gone
        connection.sendall(data[sent:])


def receive(connection: socket.socket, timeout_s: float) -> tuple[bytes, int | None]:
    """Return the body of the next message, and the descriptor that came with it, which the caller must close.

    Raises:
        ProtocolError: it is too long, or the connection ended within it.
        TimeoutError: it did not come in time, counted from the call to its last byte.
        OSError: the connection broke.
    """
    deadline = time.monotonic() + timeout_s
    descriptors: list[int] = []
    try:
        head = _exactly(connection, _LENGTH.size, deadline, descriptors)
        (length,) = _LENGTH.unpack(head)
        if length > MAX_MESSAGE_BYTES:
            raise ProtocolError(f"a message of {length} bytes is too long")
        body = _exactly(connection, length, deadline, descriptors)
    except BaseException:
        _close(descriptors)
        raise
    _close(descriptors[1:])
    return body, descriptors[0] if descriptors else None


def _exactly(connection: socket.socket, length: int, deadline: float, descriptors: list[int]) -> bytes:
    data = b""
    while len(data) < length:
        left_s = deadline - time.monotonic()
        if left_s <= 0:
            raise TimeoutError
        connection.settimeout(left_s)
        # Not socket.recv_fds, which does not pass its flags on (CPython 3.11 to 3.13).
        part, beside, _, _ = connection.recvmsg(
            length - len(data), socket.CMSG_LEN(_DESCRIPTOR.size), socket.MSG_CMSG_CLOEXEC
        )
        for level, kind, raw in beside:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                whole = len(raw) - len(raw) % _DESCRIPTOR.size
                descriptors += [number for (number,) in _DESCRIPTOR.iter_unpack(raw[:whole])]
        if not part:
            raise ProtocolError("the connection ended within a message")
        data += part
    return data


def _close(descriptors: Sequence[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)
