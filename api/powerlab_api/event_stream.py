"""Events as server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html).

Each stream asks the database now and then, so that any server process may have written what it tells. It waits on the
event loop; a thread is taken only for the moment of a question.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass

from fastapi.concurrency import run_in_threadpool

from powerlab.protocol.events import Event
from powerlab.protocol.wire import encode
from powerlab.store import Store
from powerlab.store.event_queries import EventFilter, events_after

POLL_S = 1.0
HEARTBEAT_S = 15.0
"""Silence that no proxy takes for a dead connection; a client that is gone is noticed by then."""
_RETRY_MS = 2000
_PAGE = 200


@dataclass(slots=True)
class Streams:
    """How many streams this process serves now, and how many it may."""

    most: int
    open: int = 0
    closing: bool = False

    @property
    def full(self) -> bool:
        """Whether no more are served."""
        return self.open >= self.most or self.closing


async def stream(store: Store, streams: Streams, after: int, wish: EventFilter) -> AsyncIterator[str]:
    """Yield the text of a stream until its reader leaves or the server ends."""

    def look() -> tuple[list[Event], int]:
        with store.session() as session:
            return events_after(session, after, wish, _PAGE)

    streams.open += 1
    try:
        yield f"retry: {_RETRY_MS}\n{_place(after)}"
        told = time.monotonic()
        while not streams.closing:
            found, after = await run_in_threadpool(look)
            for event in found:
                yield _text(event)
            if found:
                told = time.monotonic()
            elif time.monotonic() - told >= HEARTBEAT_S:
                yield f": nothing new\n{_place(after)}"
                told = time.monotonic()
            if len(found) < _PAGE:
                await asyncio.sleep(POLL_S)
    finally:
        streams.open -= 1


def _text(event: Event) -> str:
    return f"data: {encode(event).decode()}\n{_place(event.id)}"


def _place(last: int) -> str:
    """Return a block's end; the id is what a reader sends back as Last-Event-ID, also where nothing was told."""
    return f"id: {last}\n\n"
