"""The sets of a comparison as its address names them: ``/compare?a=…&b=…``, and what people call them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from urllib.parse import urlencode

from sqlalchemy.orm import Session
from starlette.datastructures import QueryParams

from powerlab.analysis.sets import RunSet
from powerlab.domain.errors import PowerlabError
from powerlab.store.reads.run_sets import StoredSet, stored_set
from powerlab_dashboards.format import count, model_label

LETTERS = "abcdefgh"
FEWEST, MOST = 2, len(LETTERS)
_LONGEST_WORD = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What an address asks for.

    Attributes:
        words: the sets, as :mod:`powerlab.analysis.run_selection` reads them; the first is the baseline.
        ignored: dimensions in which points may differ and still match.
        metric: whose points are shown; empty for the usual one.
    """

    words: tuple[str, ...]
    ignored: tuple[str, ...] = ()
    metric: str = ""

    def address(self, path: str = "/compare") -> str:
        """Return the address that asks for the same."""
        pairs = [*zip(LETTERS, self.words, strict=False), *(("ignore", title) for title in self.ignored)]
        if self.metric:
            pairs.append(("metric", self.metric))
        return f"{path}?{urlencode(pairs, safe=':,=')}" if pairs else path

    def without(self, word: str) -> Asked:
        """Return the same without a set."""
        return replace(self, words=tuple(one for one in self.words if one != word))

    def first(self, word: str) -> Asked:
        """Return the same with a set as the baseline."""
        return replace(self, words=(word, *(one for one in self.words if one != word)))

    def showing(self, metric: str) -> Asked:
        """Return the same with the points of another metric."""
        return replace(self, metric=metric)


def asked(query: QueryParams) -> Asked:
    """Return what an address asks for; a set that is named twice counts once."""
    words = [query.get(letter, "").strip() for letter in LETTERS]
    return Asked(
        words=tuple(dict.fromkeys(word for word in words if word)),
        ignored=tuple(dict.fromkeys(filter(None, query.getlist("ignore")))),
        metric=query.get("metric", ""),
    )


def find_sets(session: Session, words: Sequence[str]) -> tuple[StoredSet, ...]:
    """Return the sets, each with a label that no other one has.

    Raises:
        NotFoundError: there is no such sweep or device.
        PowerlabError: a word means nothing, or too much.
    """
    for word in words:
        if len(word) > _LONGEST_WORD:
            raise PowerlabError(f"a set has at most {_LONGEST_WORD} characters; {word[:20]}… has {len(word)}.")
    found = [stored_set(session, word) for word in words]
    return tuple(
        replace(one, runs=replace(one.runs, label=label)) for one, label in zip(found, labels(found), strict=True)
    )


def labels(sets: Sequence[StoredSet]) -> list[str]:
    """Return what people call each set: as little as tells it from the others."""
    told = [_first_that_differs(sets, place) for place in range(len(sets))]
    often = Counter(told)
    return [
        f"{label} ({_identity(one, place)})" if often[label] > 1 else label
        for place, (label, one) in enumerate(zip(told, sets, strict=True))
    ]


def _first_that_differs(sets: Sequence[StoredSet], place: int) -> str:
    for read in _READERS:
        values = [read(one) for one in sets]
        if all(values) and len(set(values)) == len(values):
            return values[place]
    return next(filter(None, (read(sets[place]) for read in _READERS)), sets[place].meant.word)


def _identity(one: StoredSet, place: int) -> str:
    return one.sweep.id[:8] if one.sweep is not None and not one.meant.wanted else f"set {LETTERS[place]}"


def _selection(one: StoredSet) -> str:
    return ", ".join(one.meant.wanted.values())


def _devices(one: StoredSet) -> str:
    names = sorted(name for name, _ in one.runs.devices)
    return names[0] if len(names) == 1 else count(len(names), "device")


def _models(one: StoredSet) -> str:
    return ", ".join(dict.fromkeys(model_label(run.point.workload.model) for run in one.runs.runs))


def _day(one: StoredSet) -> str:
    return "" if one.sweep is None else f"{one.sweep.created_at:%Y-%m-%d}"


def _minute(one: StoredSet) -> str:
    return "" if one.sweep is None else f"{one.sweep.created_at:%Y-%m-%d %H:%M}"


_READERS: tuple[Callable[[StoredSet], str], ...] = (_selection, _devices, _models, _day, _minute)


def run_sets(sets: Sequence[StoredSet]) -> tuple[RunSet, ...]:
    """Return the runs of the sets."""
    return tuple(one.runs for one in sets)
