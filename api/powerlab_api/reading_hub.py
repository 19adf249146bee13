"""Live readings for many viewers: one look at the database each second serves all streams of this process.

Each device that somebody watches has a short list of texts that are ready to be sent; a viewer who is slow misses the
older ones. What is watched is written down, so that its agent sends more often, whichever server it speaks to.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field

from fastapi.concurrency import run_in_threadpool
from sqlalchemy.exc import SQLAlchemyError

from powerlab.protocol.readings import LiveRecord, PhaseRecord
from powerlab.protocol.wire import encode
from powerlab.store import Store
from powerlab.store.reads.readings import SHOWN, live, phases, read_after
from powerlab.store.writes.readings import note_watched
from powerlab_api.event_stream import HEARTBEAT_S, Streams

LOOK_EVERY_S = 1.0
_NOTE_EVERY_S = 10.0
_READY = 30
_RETRY_MS = 2000
_log = logging.getLogger("powerlab.api")


@dataclass(slots=True)
class _Watched:
    """A device that somebody watches: numbered texts, and what was seen of it last."""

    last_id: int
    phase: PhaseRecord | None
    viewers: int = 0
    number: int = 0
    texts: deque[tuple[int, str]] = field(default_factory=lambda: deque(maxlen=_READY))
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def tell(self, text: str) -> None:
        """Have a text for every viewer."""
        self.number += 1
        self.texts.append((self.number, text))
        self.changed.set()
        self.changed = asyncio.Event()


class ReadingHub:
    """One for each server process; used on its event loop."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._watched: dict[str, _Watched] = {}
        self._looking: asyncio.Task[None] | None = None
        self._noted_s = 0.0

    async def follow(self, device_id: str, streams: Streams) -> AsyncGenerator[str]:
        """Yield the text of a stream: the last minutes, then what is new, until its time is over."""
        streams.open += 1
        try:
            record, last_id = await run_in_threadpool(self._first, device_id)
            watched = self._watched.setdefault(device_id, _Watched(last_id, record.phase))
            watched.viewers += 1
            try:
                yield f"retry: {_RETRY_MS}\n{_text(record)}"
                async for text in self._texts(watched, streams):
                    yield text
            finally:
                watched.viewers -= 1
                if not watched.viewers:
                    self._watched.pop(device_id, None)
        finally:
            streams.open -= 1

    async def _texts(self, watched: _Watched, streams: Streams) -> AsyncGenerator[str]:
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look())
        began, number = time.monotonic(), watched.number
        while not streams.closing and time.monotonic() - began < streams.lasting_s:
            changed = watched.changed
            found = [one for one in watched.texts if one[0] > number]
            for number, text in found:  # noqa: B007 - the last number is where to go on
                yield text
            if not found:
                try:
                    async with asyncio.timeout(min(HEARTBEAT_S, streams.lasting_s)):
                        await changed.wait()
                except TimeoutError:
                    yield ": nothing new\n\n"

    async def _look(self) -> None:
        """Look now and then for as long as somebody watches."""
        while self._watched:
            try:
                news = await run_in_threadpool(self._news, {one: its.last_id for one, its in self._watched.items()})
            except SQLAlchemyError as error:
                _log.warning("live readings cannot be looked up now: %s", error)
                news = {}
            for device_id, (last_id, record) in news.items():
                watched = self._watched.get(device_id)
                if watched is not None and (record.readings or record.phase != watched.phase):
                    watched.last_id, watched.phase = max(last_id, watched.last_id), record.phase
                    watched.tell(_text(record))
            await asyncio.sleep(LOOK_EVERY_S)

    def _first(self, device_id: str) -> tuple[LiveRecord, int]:
        now = self._store.clock()
        with self._store.write() as session:
            note_watched(session, [device_id], now)
        with self._store.session() as session:
            return live(session, device_id, now - SHOWN)

    def _news(self, after: dict[str, int]) -> dict[str, tuple[int, LiveRecord]]:
        now = self._store.clock()
        if time.monotonic() - self._noted_s >= _NOTE_EVERY_S:
            self._noted_s = time.monotonic()
            with self._store.write() as session:
                note_watched(session, after, now)
        with self._store.session() as session:
            found, doing = read_after(session, after, now - SHOWN), phases(session, list(after))
        return {
            device_id: (
                found[device_id][-1][0] if found[device_id] else 0,
                LiveRecord(readings=tuple(record for _, record in found[device_id]), phase=doing.get(device_id)),
            )
            for device_id in after
        }


def _text(record: LiveRecord) -> str:
    return f"data: {encode(record).decode()}\n\n"
