"""What a reader asks of a sweep's page, in its address: so that it can be shared, and works without scripts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlencode

from starlette.datastructures import QueryParams

from powerlab.analysis.operating_point.bounds import BOUND_KINDS, Fit
from powerlab.analysis.operating_point.candidates import candidates
from powerlab.analysis.operating_point.question import Question, parse_question
from powerlab.analysis.summary import PointSummary
from powerlab.domain.errors import PowerlabError
from powerlab_dashboards.charts.choice import COSTS, GAINS, Choice
from powerlab_dashboards.language import gettext as _
from powerlab_dashboards.language import mark

_LONGEST = 200
_MOST_PAGES = 1_000_000
_FIT_WORDS = {
    Fit.MISSED: mark("%(bound)s missed"),
    Fit.OPEN: mark("%(bound)s not sure"),
    Fit.NO_FIGURE: mark("%(bound)s unknown"),
}
BOUND_TITLES = {
    "p99": mark("p99"),
    "power": mark("power"),
    "throughput": mark("throughput"),
    "memory": mark("memory"),
    "temperature": mark("temperature"),
    "sqnr": mark("SQNR"),
    "agreement": mark("top-1 agreement"),
    "accuracy": mark("accuracy"),
}
"""Bounds in a word, by their names."""
GOALS = {
    "energy": mark("least energy per image"),
    "throughput": mark("highest throughput"),
    "latency": mark("lowest p99 latency"),
}
"""What the best point may be chosen for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The fields of the page's form, as they were typed; an empty one was not given.

    Attributes:
        goal: a key of :data:`GOALS`.
        bounds: by their names.
        metric: of the heatmap; ``x`` and ``y`` are its dimensions.
        x: see ``metric``.
        y: see ``metric``.
        cost: the front's horizontal axis.
        gain: its vertical axis.
        columns: of the table of points, chosen by the reader; empty shows the usual ones.
        words: only points in whose row all of these words are.
        sort: the column to sort by, with a dash before it for descending; empty keeps the plan's order.
        number: which part of the table, from 1.
    """

    goal: str = ""
    bounds: Mapping[str, str] = field(default_factory=dict)
    metric: str = ""
    x: str = ""
    y: str = ""
    cost: str = COSTS[0]
    gain: str = GAINS[0]
    columns: tuple[str, ...] = ()
    words: str = ""
    sort: str = ""
    number: int = 1

    @classmethod
    def of(cls, given: QueryParams) -> Asked:
        """Return what an address asks; what nobody can ask is left out."""

        def text(name: str, usual: str = "") -> str:
            return given.get(name, "").strip()[:_LONGEST] or usual

        number = text("page", "1")
        return cls(
            goal=text("goal") if text("goal") in GOALS else "",
            bounds={name: text(name) for name in BOUND_KINDS if text(name)},
            metric=text("metric"),
            x=text("x"),
            y=text("y"),
            cost=text("cost") if text("cost") in COSTS else COSTS[0],
            gain=text("gain") if text("gain") in GAINS else GAINS[0],
            columns=tuple(dict.fromkeys(given.getlist("column")[:50])),
            words=text("words"),
            sort=text("sort"),
            number=min(max(int(number), 1), _MOST_PAGES) if number.isascii() and number.isdigit() else 1,
        )

    @property
    def picks(self) -> bool:
        """Whether a best point is asked for."""
        return bool(self.goal or self.bounds)

    def question(self) -> Question:
        """Return what is asked of the points.

        Raises:
            PowerlabError: a bound makes no sense.
        """
        return parse_question(self.goal or None, self.bounds, None, None)

    def choice(self, summaries: Sequence[PointSummary], points_at: str = "") -> Choice:
        """Return what the charts show; bounds that make no sense exclude nothing."""
        try:
            barred = barred_by(summaries, self.question())
        except PowerlabError:
            barred = {}
        return Choice(
            metric=self.metric,
            x=self.x,
            y=self.y,
            cost=self.cost,
            gain=self.gain,
            barred=barred,
            points_at=points_at,
        )

    def address(self, **changes: str | int) -> str:
        """Return the query of the page with some fields changed; fields that say nothing are left out."""
        fields: dict[str, str | int] = {
            "goal": self.goal,
            **self.bounds,
            "metric": self.metric,
            "x": self.x,
            "y": self.y,
            "cost": "" if self.cost == COSTS[0] else self.cost,
            "gain": "" if self.gain == GAINS[0] else self.gain,
            "words": self.words,
            "sort": self.sort,
        }
        pairs = [(name, value) for name, value in (fields | changes).items() if value not in {"", None}]
        return "?" + urlencode([*pairs, *(("column", name) for name in self.columns)])


def barred_by(summaries: Sequence[PointSummary], question: Question) -> dict[str, str]:
    """Return why a question's bounds exclude points, by their ids: ``p99 missed``."""
    return {
        one.summary.point.id: ", ".join(
            _(_FIT_WORDS[held.fit], bound=_(BOUND_TITLES[held.bound.name]))
            for held in one.held
            if held.fit is not Fit.KEPT
        )
        for one in candidates(summaries, {}, question)
        if not one.kept
    }
