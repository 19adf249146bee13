"""Messages between machines that share a key: a length, an HMAC-SHA256 and the data; nothing is encrypted."""

from __future__ import annotations

import hmac
import socket
import struct

_LENGTH = struct.Struct("<I")
_MAC_BYTES = 32
_PART_BYTES = 1 << 20


def send_frame(connection: socket.socket, key: str, data: bytes, before: bytes = b"") -> None:
    """Send ``data``; raises OSError.

    Args:
        connection: connected.
        key: what both sides know.
        data: the message.
        before: what the HMAC covers besides, in front of the data, and is not sent.
    """
    connection.sendall(_LENGTH.pack(len(data)) + _mac(key, before + data) + data)


def receive_frame(connection: socket.socket, key: str, longest_bytes: int, before: bytes = b"") -> bytes:
    """Return the data of the next message; see :func:`send_frame`.

    Raises:
        OSError: the other side is gone, or too late.
        ValueError: it does not know the key, or the message is too long.
    """
    (length,) = _LENGTH.unpack(receive_exactly(connection, _LENGTH.size))
    if length > longest_bytes:
        raise ValueError("no message is that long")
    mac, data = receive_exactly(connection, _MAC_BYTES), receive_exactly(connection, length)
    if not hmac.compare_digest(mac, _mac(key, before + data)):
        raise ValueError("it does not know the key")
    return data


def receive_exactly(connection: socket.socket, size: int) -> bytes:
    """Return the next ``size`` bytes; raises OSError."""
    data = bytearray()
    while len(data) < size:
        part = connection.recv(min(size - len(data), _PART_BYTES))
        if not part:
            raise ConnectionResetError("it closed the connection")
        data += part
    return bytes(data)


def _mac(key: str, data: bytes) -> bytes:
    return hmac.digest(key.encode(), data, "sha256")
