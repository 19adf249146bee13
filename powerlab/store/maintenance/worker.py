"""Hourly maintenance of the database: create partitions ahead, apply retention."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from functools import partial

from sqlalchemy.exc import DBAPIError

from powerlab.domain.errors import PowerlabError
from powerlab.periodic import at_intervals
from powerlab.store.connection import Store
from powerlab.store.maintenance.partitions import make_ahead, month_of
from powerlab.store.maintenance.retention import retire
from powerlab.store.tables import RetirementRow
from powerlab.store.tables.retirement import Kind
from powerlab.store.writes.readings import forget_old

_log = logging.getLogger("powerlab.store")
PERIOD_S = 3600.0
SERVER = "server"
"""Who removes, in the log."""
LONGEST_GAP = timedelta(days=62)
"""Between two times at which a server retires: two months, for it may be away for a while."""


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
    try:
        with store.write() as session:
            forget_old(session, store.clock())
    except DBAPIError as error:
        _log.warning("old readings were not removed, which is tried again: %s", error)
    for kind, months in keep.items():
        try:
            _check_clock(store, kind, months)
            done = retire(store, kind, months, by=SERVER)
        except (PowerlabError, DBAPIError) as error:
            _log.warning("not everything old of %s was removed, which is tried again: %s", kind, error)
            continue
        if done.row_count or done.file_count:
            _log.info("removed %s: %d rows and %d files", kind, done.row_count, done.file_count)


def _check_clock(store: Store, kind: Kind, months: int) -> None:
    """Raise PowerlabError where months went by at once: the clock may be wrong, and what goes is gone."""
    now = store.clock()
    with store.session() as session:
        row = session.get(RetirementRow, kind.value)
    # Both: less may be kept than before, or more, so that no month has begun to be old for long.
    if row is not None and min(month_of(now, -months) - row.before, now - row.retired_at) > LONGEST_GAP:
        raise PowerlabError(
            f"the clock says {now:%d %B %Y}, and the last month of {kind} was retired on {row.retired_at:%d %B %Y}; "
            f"set it right, or if it is right, confirm once with `powerlab database retire --keep-{kind} {months}`."
        )
