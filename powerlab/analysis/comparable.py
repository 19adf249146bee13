"""Sets of runs by several metrics, and in a sentence why some cannot be compared."""

from __future__ import annotations

from collections.abc import Sequence

from powerlab.analysis.sets import RunSet, SetComparison, common_places, compare_sets
from powerlab.analysis.unmatched import nothing_in_common
from powerlab.domain.errors import PowerlabError


def compare_by(sets: Sequence[RunSet], names: Sequence[str], ignored: Sequence[str] = ()) -> tuple[SetComparison, ...]:
    """Compare two or more sets by some metrics; the first is the baseline.

    Args:
        sets: at least two.
        names: the metrics.
        ignored: dimensions in which points may differ and still match.

    Raises:
        PowerlabError: no point of the first set is in another one, none has a figure, or as :func:`compare_sets`.
    """
    if not common_places(sets, ignored):
        raise PowerlabError(nothing_in_common(sets[0], sets[1:], ignored))
    compared = tuple(compare_sets(sets, name, ignored) for name in names)
    if not any(match.one.metric for one in compared for beside in one.against for match in beside.matches):
        raise PowerlabError(
            f"{' and '.join(one.label for one in sets[1:])} have no usable figures to compare with {sets[0].label}; "
            "`powerlab runs list --sweep` shows why."
        )
    return compared


def left_out(sets: Sequence[RunSet], ignored: Sequence[str] = ()) -> list[str]:
    """Return a sentence for each set that has no point in common with the first one, so that no table has it."""
    first, *others = sets
    return [nothing_in_common(first, [one], ignored) for one in others if not common_places([first, one], ignored)]
