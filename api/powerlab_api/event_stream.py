"""Server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html).

Each stream asks the database now and then, so that any server process may have written what it tells. It waits on the
event loop; a thread is taken only for the moment of a question. What it holds in memory is a page of events, however
slowly its reader takes them: it asks for the next one when these are sent.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import cast

from fastapi.concurrency import run_in_threadpool
from fastapi.responses import StreamingResponse
from starlette.types import Message, Send

from powerlab.protocol.events import Event
from powerlab.protocol.wire import encode
from powerlab.store import Store
from powerlab.store.errors import RetiredError
from powerlab.store.maintenance.retired import check_events_kept
from powerlab.store.reads.events import EventFilter, events_after

POLL_S = 1.0
HEARTBEAT_S = 15.0
"""Silence that no proxy takes for a dead connection; a client that is gone is noticed by then."""
PATIENCE_S = 60.0
"""How long a reader may take nothing of what is there for it; then its place is given to another."""
_RETRY_MS = 2000
_PAGE = 200
_log = logging.getLogger("powerlab.api")


@dataclass(slots=True, kw_only=True)
class Streams:
    """How many streams this process serves now, how many it may, and how long each.

    Attributes:
        most: so many at the same time.
        lasting_s: a stream ends after that; its reader comes back, and has to show again that it may.
        open: streams now.
        closing: the server is about to end.
    """

    most: int
    lasting_s: float
    open: int = 0
    closing: bool = False

    @property
    def full(self) -> bool:
        """Whether no more are served."""
        return self.open >= self.most or self.closing


async def stream(store: Store, streams: Streams, after: int, filters: EventFilter) -> AsyncGenerator[str]:
    """Yield the text of a stream until its reader leaves, its time is over or the server ends."""

    def look() -> tuple[list[Event], int]:
        with store.session() as session:
            found, behind = events_after(session, after, filters, _PAGE)
            if behind > after:
                check_events_kept(session, after)
            return found, behind

    streams.open += 1
    try:
        yield f"retry: {_RETRY_MS}\n{_place(after)}"
        began = told = time.monotonic()
        while not streams.closing:
            try:
                found, after = await run_in_threadpool(look)
            except RetiredError:
                return  # what comes next went before this slow reader took it; it comes back, and is told so
            for event in found:
                yield _text(event)
            if found:
                told = time.monotonic()
            elif time.monotonic() - told >= HEARTBEAT_S:
                yield f": nothing new\n{_place(after)}"
                told = time.monotonic()
            if time.monotonic() - began >= streams.lasting_s:
                return
            if len(found) < _PAGE:
                await asyncio.sleep(POLL_S)
    finally:
        streams.open -= 1


class EventStream(StreamingResponse):
    """A stream that leaves a reader who takes nothing: the connection is cut, and there is room for somebody else."""

    async def stream_response(self, send: Send) -> None:
        """Send the parts one after the other, as long as they are taken."""

        async def patiently(message: Message) -> None:
            async with asyncio.timeout(PATIENCE_S):
                await send(message)

        async with aclosing(cast("AsyncGenerator[str]", self.body_iterator)):
            try:
                await super().stream_response(patiently)
            except TimeoutError:
                _log.warning("a reader of live events took nothing for %.0f s; its connection is cut", PATIENCE_S)


def _text(event: Event) -> str:
    return f"data: {encode(event).decode()}\n{_place(event.id)}"


def _place(last: int) -> str:
    """Return a block's end; the id is what a reader sends back as Last-Event-ID, also where nothing was told."""
    return f"id: {last}\n\n"
