"""How the processes of a ring find each other: all come to the first one, which tells each where the next one is."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

from powerlab.domain.errors import PowerlabError
from powerlab.domain.place import Place
from powerlab.signed_frames import receive_frame, send_frame

_LONGEST_BYTES = 1 << 16


def neighbours(place: Place) -> tuple[socket.socket, socket.socket]:
    """Return connections to the process on the left, and to the one on the right.

    Raises:
        PowerlabError: they did not come in time.
    """
    deadline = time.monotonic() + place.meet_s
    try:
        return _first(place, deadline) if place.rank == 0 else _other(place, deadline)
    except (OSError, ValueError) as error:
        raise PowerlabError(
            f"the {place.size} processes that are to train together did not meet within {place.meet_s:g} s ({error})."
        ) from error


def _first(place: Place, deadline: float) -> tuple[socket.socket, socket.socket]:
    """Gather the others, tell each where its right neighbour is, and make the ring."""
    assert place.listener is not None  # noqa: S101 - the first one has it
    came: dict[int, tuple[socket.socket, tuple[str, int]]] = {}
    with ExitStack() as stack:
        listener = stack.enter_context(socket.socket(fileno=place.listener))
        while len(came) < place.size - 1:
            one, said = _accepted(listener, place, deadline)
            stack.callback(one.close)
            if 0 < said["rank"] < place.size:
                came[said["rank"]] = one, (one.getpeername()[0], said["port"])
        for rank, (one, _) in came.items():
            _send(one, place, {"right": came[rank + 1][1] if rank + 1 in came else None})
        right = _joined(came[1][1], place, deadline)
        last = came[place.size - 1][0]  # whose connection stays: the first one is on its right
        return last.dup(), right


def _other(place: Place, deadline: float) -> tuple[socket.socket, socket.socket]:
    with ExitStack() as stack:
        own = stack.enter_context(socket.create_server(("", 0)))
        first = stack.enter_context(socket.create_connection((place.host, place.port), timeout=_left_s(deadline)))
        _send(first, place, {"rank": place.rank, "port": own.getsockname()[1]})
        right = _received(first, place, deadline)["right"]
        onward = stack.enter_context(_quick(first.dup()) if right is None else _joined(tuple(right), place, deadline))
        left, _ = _accepted(own, place, deadline)
        return left, onward.dup()


def _joined(address: tuple[str, int], place: Place, deadline: float) -> socket.socket:
    one = socket.create_connection(address, timeout=_left_s(deadline))
    try:
        _send(one, place, {"rank": place.rank, "port": 0})
    except OSError:
        one.close()
        raise
    return _quick(one)


def _accepted(listener: socket.socket, place: Place, deadline: float) -> tuple[socket.socket, dict[str, Any]]:
    """Return the next connection of a process that knows the key, and what it says."""
    while True:
        listener.settimeout(_left_s(deadline))
        one, _ = listener.accept()
        try:
            return _quick(one), _received(one, place, deadline)
        except (OSError, ValueError):
            one.close()  # a stranger


def _quick(one: socket.socket) -> socket.socket:
    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return one


def _send(one: socket.socket, place: Place, message: Mapping[str, object]) -> None:
    send_frame(one, place.key, json.dumps(message).encode())


def _received(one: socket.socket, place: Place, deadline: float) -> dict[str, Any]:
    one.settimeout(_left_s(deadline))
    said: dict[str, Any] = json.loads(receive_frame(one, place.key, _LONGEST_BYTES))
    return said


def _left_s(deadline: float) -> float:
    return max(0.001, deadline - time.monotonic())
