"""The homes that traces may have, by the beginning of their addresses."""

from __future__ import annotations

from collections.abc import Callable

from powerlab.domain.errors import PowerlabError
from powerlab.store.traces.base import TraceStore
from powerlab.store.traces.database import DatabaseTraceStore

DATABASE = "database"


def _database(_address: str) -> TraceStore:
    return DatabaseTraceStore()


HOMES: dict[str, Callable[[str], TraceStore]] = {DATABASE: _database}
"""By scheme; each makes a home of an address."""


def open_traces(address: str | None) -> TraceStore:
    """Return the home of traces at an address; the database itself where there is none.

    Raises:
        PowerlabError: no home has such an address, or it cannot be used.
    """
    chosen = address or DATABASE
    make = HOMES.get(chosen.partition(":")[0])
    if make is None:
        raise PowerlabError(f"traces cannot lie at {chosen!r}; give one of: {', '.join(HOMES)}.")
    return make(chosen)
