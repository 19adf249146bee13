"""What may be claimed of a point that looks best: the one rule behind every headline.

A point is the *winner* if it is shown to beat each of its rivals, and all of these claims hold together at 95 % (Holm,
Scandinavian Journal of Statistics 6, 1979): so it does not matter that it was picked among many by its figure. A claim
takes :data:`MIN_VALID` valid runs of both points; where a point has fewer, there is *not enough data*. Otherwise the
best is *tied* with those that it does not beat.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from powerlab.analysis.comparison import LEVEL, Ratio, compare, holm, margin
from powerlab.analysis.summary import MIN_VALID, sound_runs
from powerlab.domain.run import Run


class Decision(StrEnum):
    """What a headline may claim of the best point."""

    WINNER = "winner"
    TIED = "tied"
    NOT_ENOUGH_DATA = "not enough data"


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How the best of several stands to each of its rivals.

    Attributes:
        decision: what may be claimed.
        ratios: the best's figure over each rival's; None where there is no ratio.
        beaten: by rival, whether the best is shown to be better.
        missing_repeats: valid repeats that the worst known of them lacks for a claim; 0 where all have enough.
    """

    decision: Decision
    ratios: tuple[Ratio | None, ...]
    beaten: tuple[bool, ...]
    missing_repeats: int = 0

    @property
    def unbeaten(self) -> tuple[int, ...]:
        """The rivals that are not shown to be worse, by their place."""
        return tuple(place for place, beaten in enumerate(self.beaten) if not beaten)


def standing(best: Sequence[Run], rivals: Sequence[Sequence[Run]], name: str, *, level: float = LEVEL) -> Standing:
    """Return what may be claimed of the best of several points of one device.

    Args:
        best: the runs of the point with the best figure.
        rivals: the runs of every other point that competes with it.
        name: the metric.
        level: the error level of all claims together.
    """
    ratios = tuple(compare(best, rival, name) for rival in rivals)
    return judged(ratios, missing_repeats([best, *rivals], name), level=level)


def judged(ratios: Sequence[Ratio | None], missing: int, *, level: float = LEVEL) -> Standing:
    """Return what may be claimed by the ratios of the best to each rival; raises nothing.

    Args:
        ratios: the best's figure over each rival's.
        missing: valid repeats that the worst known of them lacks.
        level: the error level of all claims together.
    """
    claimed = holm([None if ratio is None else ratio.level for ratio in ratios], level)
    beaten = tuple(made and ratio is not None and _better(ratio) for made, ratio in zip(claimed, ratios, strict=True))
    return Standing(
        decision=_decision(ratios, beaten, missing), ratios=tuple(ratios), beaten=beaten, missing_repeats=missing
    )


def missing_repeats(points: Sequence[Sequence[Run]], name: str) -> int:
    """Return how many valid repeats the worst known of some points lacks for a claim about one metric."""
    return max(0, *(MIN_VALID - len(sound_runs(runs, name)) for runs in points))


def lacking(points: Iterable[Sequence[Run]], name: str) -> dict[str, int]:
    """Return, by the identifier of a sweep, how many valid repeats its points lack for a claim about one metric.

    A point that was measured by several sweeps counts as one of the newest.
    """
    found: dict[str, int] = {}
    for runs in points:
        missing = MIN_VALID - len(sound_runs(runs, name))
        if missing > 0 and runs:
            sweep = max(runs, key=lambda run: run.started_at).sweep_id
            found[sweep] = max(missing, found.get(sweep, 0))
    return found


def _decision(ratios: Sequence[Ratio | None], beaten: Sequence[bool], missing: int) -> Decision:
    if missing or not ratios or any(ratio is None or ratio.level is None for ratio in ratios):
        return Decision.NOT_ENOUGH_DATA
    return Decision.WINNER if all(beaten) else Decision.TIED


def _better(ratio: Ratio) -> bool:
    low = margin(ratio)[1]
    return low is not None and low > 0
