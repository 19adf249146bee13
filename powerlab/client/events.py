"""Follow a server's events from Python.

::

    for event in follow_events("http://server:8765", sweep_id=sweep_id):
        print(event.kind, event.run_id)
        if event.kind in (EventKind.SWEEP_FINISHED, EventKind.SWEEP_FAILED):
            break
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from urllib.parse import urlencode

import urllib3

from powerlab.domain.errors import PowerlabError
from powerlab.protocol.events import Event
from powerlab.protocol.messages import Problem
from powerlab.protocol.wire import decode

_SILENCE_S = 40.0
"""The server says something every 15 s; after so long the connection is dead, whatever the network claims."""
_RETRY_S = 2.0


@dataclass(frozen=True, slots=True)
class Block:
    """What lies between two empty lines of a stream; ``last_id`` stands also where there is no data."""

    data: str
    last_id: str | None


def blocks(lines: Iterable[str]) -> Iterator[Block]:
    """Take a stream of server-sent events apart.

    The format: https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation; comments and
    fields that are not needed here are left out, and so is a block that was cut off.
    """
    data: list[str] = []
    last_id: str | None = None
    for line in lines:
        if line == "":
            yield Block("\n".join(data), last_id)
            data = []
            continue
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            data.append(value)
        elif name == "id" and "\0" not in value:
            last_id = value


def follow_events(
    server: str,
    token: str | None = None,
    *,
    after: int | None = None,
    sweep_id: str | None = None,
    device_id: str | None = None,
    patience_s: float = 60.0,
) -> Iterator[Event]:
    """Yield events as they happen, each once, over cut connections and restarts of the server.

    Args:
        server: its address, ``http://host:port``.
        token: a bearer token, where the server asks for one.
        after: begin behind this event's id; 0 begins with the first there is, None with what happens next.
        sweep_id: only events of this sweep.
        device_id: only events of this device.
        patience_s: how long a server may be away.

    Raises:
        PowerlabError: the server says no, or stays away.
    """
    headers = {"Accept": "text/event-stream", **({"Authorization": f"Bearer {token}"} if token else {})}
    fields = {"after": after, "sweep_id": sweep_id, "device_id": device_id}
    query = urlencode({name: value for name, value in fields.items() if value is not None})
    address = f"{server.rstrip('/')}/api/v1/events" + (f"?{query}" if query else "")
    away_since: float | None = None
    with urllib3.PoolManager(retries=False, timeout=urllib3.Timeout(connect=5.0, read=_SILENCE_S)) as pool:
        while True:
            try:
                for block in blocks(_lines(pool, address, headers)):
                    away_since = None
                    if block.last_id:
                        headers["Last-Event-ID"] = block.last_id
                    if block.data:
                        yield decode(block.data, Event)
            except urllib3.exceptions.HTTPError as error:
                away_since = time.monotonic() if away_since is None else away_since
                if time.monotonic() - away_since > patience_s:
                    raise PowerlabError(f"no powerlab server answers at {server} ({error}); is it running?") from error
            time.sleep(min(_RETRY_S, patience_s))


def _lines(pool: urllib3.PoolManager, address: str, headers: dict[str, str]) -> Iterator[str]:
    """Yield the lines of one connection, without their ends."""
    answer = pool.request("GET", address, headers=headers, preload_content=False)
    try:
        if answer.status in (429, 503):
            raise urllib3.exceptions.HTTPError(f"status {answer.status}")
        if answer.status != 200:
            raise PowerlabError(decode(answer.read(), Problem).detail)
        rest = b""
        while True:
            part = answer.read1()
            if not part:
                return
            *whole, rest = (rest + part).split(b"\n")
            for line in whole:
                yield line.decode().removesuffix("\r")
    finally:
        answer.close()
