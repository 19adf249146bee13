"""Dependencies of routes as Annotated types.

What asks no database is ``async``: FastAPI answers it on the event loop, and everything else in a thread of the pool.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from fastapi import Depends, Query, Request
from sqlalchemy.orm import Session

from powerlab.store import Store
from powerlab_api.job_watch import JobWatch
from powerlab_api.settings import Settings


async def _store(request: Request) -> Store:
    store: Store = request.app.state.store
    return store


async def _settings(request: Request) -> Settings:
    settings: Settings = request.app.state.settings
    return settings


async def _job_watch(request: Request) -> JobWatch:
    watch: JobWatch = request.app.state.job_watch
    return watch


StoreDep = Annotated[Store, Depends(_store)]
SettingsDep = Annotated[Settings, Depends(_settings)]
JobWatchDep = Annotated[JobWatch, Depends(_job_watch)]


def _session(store: StoreDep) -> Iterator[Session]:
    with store.session() as session:
        yield session


ReadSession = Annotated[Session, Depends(_session, scope="function")]
"""Closed before the answer is sent: a stream must not hold a connection that it does not use."""
Limit = Annotated[int, Query(ge=1, le=500, description="items on a page")]
Cursor = Annotated[str | None, Query(description="next_cursor of the page before")]
