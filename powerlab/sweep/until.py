"""``--until``: which points continue, and whether the requested precision is attainable."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

from powerlab.analysis.precision import precision
from powerlab.domain.coverage import half_width_95
from powerlab.domain.errors import PowerlabError
from powerlab.domain.order import Key
from powerlab.domain.power import Rail
from powerlab.domain.preflight import MIN_REPEATS
from powerlab.domain.run import Run
from powerlab.domain.sweep import Point, SweepPlan
from powerlab.measure.recording.rails import Meter


def check_until(plan: SweepPlan, meter: Meter) -> None:
    """Refuse a width that no number of repeats can reach, as far as the sensors' stated errors tell.

    Raises:
        PowerlabError: the narrowest interval there can be is wider than asked for, or there is no power at all.
    """
    if plan.until_percent == 0:
        return
    option = f"--until {plan.until_percent:g}%"
    if not meter.rails:
        raise PowerlabError(
            f"{option} is about img/s/W, and no power source can be read here; leave it out, or see `powerlab doctor`."
        )
    best = min(meter.rails, key=lambda rail: rail.relative_error)
    least = _inverted(_least_share(meter.rails))
    if not math.isfinite(least):
        raise PowerlabError(
            f"{option} cannot be reached: {best.key} is only known to ±{100 * best.relative_error:g} %, so the "
            "interval "
            "of img/s/W has no upper end; leave it out."
        )
    if 100 * least > plan.until_percent:
        raise PowerlabError(
            f"{option} cannot be reached: {best.key} is only known to ±{100 * best.relative_error:g} %; ask for at "
            f"least --until {_rounded_up(100 * least):g}%."
        )


def _least_share(rails: Sequence[Rail]) -> float:
    """Return the narrowest 95 % interval of the total that gains allow, as a share of it, to either side.

    Rails of one source share their gain error, so their sum is known no better than the best of them; independent
    sources are known best together where each has the share of the power that favours it.
    """
    by_source: defaultdict[str, float] = defaultdict(lambda: math.inf)
    for rail in rails:
        by_source[rail.source] = min(by_source[rail.source], rail.relative_error)
    if any(error == 0 for error in by_source.values()):
        return 0.0
    uncertainty = 1 / math.sqrt(3 * sum(1 / error**2 for error in by_source.values()))
    return half_width_95(uncertainty, uncertainty)


def _inverted(share: float) -> float:
    """Return how far the interval of the inverse reaches, to its wider side."""
    return share / (1 - share) if share < 1 else math.inf


def _rounded_up(percent: float) -> float:
    """Round up to two digits, with a tenth to spare for the scatter."""
    step = 10.0 ** (math.floor(math.log10(percent)) - 1)
    return round(math.ceil(1.1 * percent / step) * step, 12)


def still_wide(plan: SweepPlan, runs: Mapping[str, Sequence[Run]], done: Collection[Key]) -> tuple[Point, ...]:
    """Return the points that another repeat may bring closer to what ``--until`` asks for.

    Not those that are known well enough, whose sensors alone leave more unknown, or that give no figure. Runs of an
    earlier life of the sweep are known by their number only, and so count for nothing here: the point goes on until
    this life's runs know it well enough by themselves, which is never too little.

    Args:
        plan: with the width that is asked for.
        runs: what was measured, by point.
        done: (point id, repeat) of runs measured before.
    """
    return tuple(point for point in plan.points() if _goes_on(plan, runs.get(point.id, ()), done, point))


def _goes_on(plan: SweepPlan, runs: Sequence[Run], done: Collection[Key], point: Point) -> bool:
    if plan.until_percent == 0:
        return False
    if len(runs) < MIN_REPEATS and any(key == point.id for key, _ in done):
        return True
    found = precision(runs)
    return found is not None and found.least_percent <= plan.until_percent < found.percent


def widest_percent(points: Sequence[Point], runs: Mapping[str, Sequence[Run]]) -> float | None:
    """Return how precisely the least known of some points is known; None where no interval says so."""
    known = [found.percent for point in points if (found := precision(runs.get(point.id, ()))) is not None]
    return max((percent for percent in known if math.isfinite(percent)), default=None)
