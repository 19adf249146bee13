"""Accept one connection after another, check the peer's credentials, and answer one request each."""

from __future__ import annotations

import logging
import os
import select
import signal
import socket
import struct
from dataclasses import dataclass

from powerlab.privileged.protocol import (
    May,
    ProtocolError,
    Refused,
    Reply,
    Request,
    decode_request,
    receive,
    send,
)
from powerlab_helper.actions import Actions

_log = logging.getLogger("powerlab.helper")
_REQUEST_TIMEOUT_S = 5.0
"""How long a request may take to come and its reply to be read: others wait meanwhile."""
_LONGEST_LOGGED = 500
"""Characters of a message; what is longer is no honest request, and would fill the log."""
_CREDENTIALS = struct.Struct("3i")


@dataclass(frozen=True, slots=True)
class Peer:
    """Who asks, as the kernel saw it when the connection was made (SO_PEERCRED, unix(7))."""

    pid: int
    uid: int
    gid: int


def peer_of(connection: socket.socket) -> Peer:
    """Return who is at the other end."""
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return Peer(*_CREDENTIALS.unpack(raw))


@dataclass(frozen=True, slots=True)
class Server:
    """Serves one device.

    Attributes:
        listener: a listening Unix socket.
        actions: what is done on the device.
        uids: who may ask.
    """

    listener: socket.socket
    actions: Actions
    uids: frozenset[int]

    def serve(self) -> None:
        """Answer until SIGTERM or SIGINT; a request in progress is finished first. Sleeps without ever waking up."""
        stop_reader, stop_writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(stop_writer)
        handlers = {number: signal.signal(number, lambda *_: None) for number in (signal.SIGTERM, signal.SIGINT)}
        self.listener.setblocking(False)
        _log.info("serving %s", self._names())
        try:
            while stop_reader not in select.select([self.listener.fileno(), stop_reader], [], [])[0]:
                self._accept()
        finally:
            signal.set_wakeup_fd(-1)
            for number, handler in handlers.items():
                signal.signal(number, handler)
            os.close(stop_reader)
            os.close(stop_writer)

    def _accept(self) -> None:
        try:
            connection, _ = self.listener.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return  # whoever it was has gone again
        with connection:
            try:
                self._answer(connection, peer_of(connection))
            except (ProtocolError, OSError) as error:
                _log.warning("a connection was given up: %s", str(error) or type(error).__name__)

    def _answer(self, connection: socket.socket, peer: Peer) -> None:
        connection.settimeout(_REQUEST_TIMEOUT_S)
        if peer.uid not in self.uids:
            _log.warning("refused user %d (process %d), who may not ask", peer.uid, peer.pid)
            send(
                connection, Refused(f"the privileged helper does not serve user {peer.uid}; it serves {self._names()}.")
            )
            return
        body, guard = receive(connection, _REQUEST_TIMEOUT_S)
        try:
            request = decode_request(body)
            if guard is not None:
                os.set_inheritable(guard, True)  # a program goes on being guarded should the helper die
            outcome = self.actions.carry_out(request, peer.uid)
            try:
                _note(peer, request, outcome.reply)
                connection.settimeout(_REQUEST_TIMEOUT_S)
                send(connection, outcome.reply, outcome.descriptor)
            finally:
                if outcome.descriptor is not None:
                    os.close(outcome.descriptor)
        finally:
            if guard is not None:
                os.close(guard)

    def _names(self) -> str:
        return " and ".join(f"user {uid}" for uid in sorted(self.uids))


def _note(peer: Peer, request: Request, reply: Reply) -> None:
    """Log what was done for whom; questions, which change nothing, only when logging is on in full."""
    level = logging.DEBUG if isinstance(request, May) else logging.INFO
    asked, answered = (f"{message!r}"[:_LONGEST_LOGGED] for message in (request, reply))
    _log.log(level, "user %d, process %d: %s -> %s", peer.uid, peer.pid, asked, answered)
