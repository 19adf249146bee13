"""Background thread that computes the summaries of finished sweeps."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from sqlalchemy import and_, exists, or_, select
from sqlalchemy.exc import DBAPIError

from powerlab.analysis.summary import METHOD
from powerlab.periodic import at_intervals
from powerlab.protocol.records import OVER
from powerlab.store.connection import Store
from powerlab.store.tables import JobRow, SweepSummaryRow
from powerlab.store.writes.summaries import keep_summaries

_log = logging.getLogger("powerlab.store")
PERIOD_S = 30.0
REST = 4.0
"""How many times as long as a sweep took is waited for the next: a fifth of a core is enough after an upgrade."""


@contextmanager
def kept_summed(store: Store, period_s: float = PERIOD_S) -> Iterator[None]:
    """Keep summaries meanwhile: of what is there already, by any method before this one, and of what ends."""
    with at_intervals(partial(_sum_up, store), period_s, "powerlab-summaries", at_once=True):
        yield  # what is cut off at the end is done again the next time


def _sum_up(store: Store) -> None:
    try:
        sum_up(store, rest=REST)
    except DBAPIError as error:
        _log.warning("summaries of sweeps were not kept; readers work them out meanwhile: %s", error)


def sum_up(store: Store, *, rest: float = 0.0) -> int:
    """Keep the summaries of every sweep that is over and has none, or some of an earlier method; returns how many.

    Args:
        store: which database.
        rest: how many times as long as each took is waited afterwards.

    Raises:
        OperationalError: the database cannot be reached.
    """
    done = exists().where(
        SweepSummaryRow.sweep_id == JobRow.sweep_id,
        or_(
            SweepSummaryRow.method > METHOD,
            and_(SweepSummaryRow.method == METHOD, SweepSummaryRow.answers.is_not(None)),
        ),
    )
    with store.session() as session:
        due = session.scalars(select(JobRow.sweep_id).where(JobRow.state.in_(OVER), ~done)).all()
    count = 0
    for sweep_id in due:
        began_s = time.monotonic()
        with store.write() as session:
            count += keep_summaries(session, sweep_id)
        time.sleep(rest * (time.monotonic() - began_s))
    return count
