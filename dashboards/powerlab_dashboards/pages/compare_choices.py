"""What can be compared: the newest sweeps, and the devices, models, engines and modes that they name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlalchemy.orm import Session
from starlette.datastructures import QueryParams

from powerlab.analysis.dimensions import DIMENSIONS
from powerlab.analysis.run_selection import DEVICE, selection
from powerlab.domain.errors import PowerlabError
from powerlab.domain.model_name import short
from powerlab.domain.run import Run
from powerlab.protocol.records import SweepRecord
from powerlab.store.reads import queries
from powerlab.store.reads.filters import SweepFilter
from powerlab_dashboards.pages.compared_sets import LETTERS, Asked
from powerlab_dashboards.pages.sweep_list import ListedSweep, listed

SWEEP_LIMIT = 50
_MOST_VALUES = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """What the form offers: sweeps, and by key the values that may be compared or kept to."""

    sweeps: tuple[ListedSweep, ...]
    values: dict[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """A sweep against itself: its points by a dimension, and the address that compares them."""

    title: str
    values: tuple[str, ...]
    address: str


def choices(session: Session, text: str = "") -> Choices:
    """Return what there is to compare among the newest sweeps with runs, those that name a text where one is given."""
    records = [
        record
        for record in queries.list_sweeps(session, SweepFilter(text=text or None), limit=SWEEP_LIMIT)
        if record.stored_run_count
    ]
    return Choices(
        sweeps=tuple(listed(session, records)),
        values={
            DEVICE: _distinct(record.device_name for record in records),
            "model": _distinct(short(model) for record in records for model in record.plan.models),
            "engine": _distinct(engine for record in records for engine in record.plan.engines),
            "mode": _distinct(mode for record in records for mode in record.plan.modes),
        },
    )


def _distinct(words: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(words)))[:_MOST_VALUES]


def chosen(query: QueryParams) -> Asked | None:
    """Return what the form asks for, None where it was not sent.

    Raises:
        PowerlabError: a set in words has a key that does not exist, or there are too many sets.
    """
    words = [word.strip() for word in query.getlist("set") if word.strip()]
    if not words:
        return None
    kept = {key: value for key in (DEVICE, "model") if (value := query.get(f"only-{key}", ""))}
    found = tuple(dict.fromkeys(_narrowed(word, kept) for word in words))
    if len(found) > len(LETTERS):
        raise PowerlabError(f"at most {len(LETTERS)} sets can be compared, not {len(found)}; choose fewer of them.")
    return Asked(words=found)


def _narrowed(word: str, kept: dict[str, str]) -> str:
    """Return the word with what is kept to, as far as it does not say so itself; a sweep has its own device."""
    meant = selection(word)
    wanted = dict(meant.wanted) | {key: value for key, value in kept.items() if key not in meant.wanted}
    pairs = ",".join(f"{key}={value}" for key, value in wanted.items())
    return pairs if not meant.sweep else f"{meant.sweep}:{pairs}" if pairs else meant.sweep


def splits(record: SweepRecord, runs: Sequence[Run]) -> tuple[Split, ...]:
    """Return the dimensions in which a sweep's points differ, in two to eight values."""
    found = []
    for dimension in DIMENSIONS:
        values = tuple(dict.fromkeys(dimension.read(run.point) for run in runs))
        if 2 <= len(values) <= len(LETTERS) and all(values):
            key = dimension.title.replace(" ", "-")
            words = tuple(f"{record.id}:{key}={value}" for value in values)
            found.append(Split(title=dimension.title, values=values, address=Asked(words=words).address()))
    return tuple(found)
