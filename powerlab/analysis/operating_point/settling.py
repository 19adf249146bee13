"""How many repeats it may take until an open bound is kept or missed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median, stdev

from powerlab.analysis.summary import typical_figure
from powerlab.domain.quantity import Metric
from powerlab.domain.statistics import student_95

MOST_REPEATS = 1000
"""More repeats than that nobody makes."""
_FEWEST = 2


def repeats_to_settle(figures: Sequence[Metric], limit: float) -> int | None:
    """Return how many repeats would make the interval end before the limit, if all went on as before.

    The scatter shrinks with repeats as Student's t on their mean does; what a single run cannot know about itself, its
    sensors' errors above all, does not.

    Args:
        figures: the metric of every usable repeat.
        limit: of the bound, in the metric's unit.

    Returns:
        The least number, more than there are; None where no number of repeats up to :data:`MOST_REPEATS` would do, or
        there are too few to see the scatter.
    """
    if len(figures) < _FEWEST:
        return None
    values = [figure.value for figure in figures]
    distance, scatter = abs(median(values) - limit), stdev(values)
    typical = typical_figure(figures)
    own = 0.0
    if typical is not None and typical.low is not None and typical.high is not None:
        own = max(typical.high - typical.value, typical.value - typical.low)
    if own >= distance:
        return None
    counts = range(len(figures) + 1, MOST_REPEATS + 1)
    return next(
        (count for count in counts if math.hypot(student_95(count - 1) * scatter / math.sqrt(count), own) < distance),
        None,
    )
