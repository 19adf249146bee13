"""What a server does for its database every hour: months are made ahead, and what is kept no longer goes."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial

from sqlalchemy.exc import DBAPIError

from powerlab.domain.errors import PowerlabError
from powerlab.intervals import at_intervals
from powerlab.store.connection import Store
from powerlab.store.models.retirement import Kind
from powerlab.store.partitions import make_ahead
from powerlab.store.retention import retire

_log = logging.getLogger("powerlab.store")
PERIOD_S = 3600.0
SERVER = "server"
"""Who removes, in the log."""


@contextmanager
def kept_up(store: Store, keep: Mapping[Kind, int], period_s: float = PERIOD_S) -> Iterator[None]:
    """Look after a database meanwhile, now and every hour; ``keep`` says for how many months what is kept."""
    with at_intervals(partial(look_after, store, keep), period_s, "powerlab-months", at_once=True):
        yield


def look_after(store: Store, keep: Mapping[Kind, int]) -> None:
    """Make the months to come, and remove what is older than it is kept; what cannot be done now is tried again."""
    try:
        make_ahead(store.engine, store.clock())
    except DBAPIError as error:
        _log.warning("months were not made ahead; what comes then lies in none: %s", error)
    for kind, months in keep.items():
        try:
            done = retire(store, kind, months, by=SERVER)
        except (PowerlabError, DBAPIError) as error:
            _log.warning("not everything old of %s was removed; the rest goes the next time: %s", kind, error)
            continue
        if done.row_count or done.file_count:
            _log.info("removed %s: %d rows and %d files", kind, done.row_count, done.file_count)
