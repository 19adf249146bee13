"""The table of a comparison: every ratio, and what is in its interval."""

from __future__ import annotations

from collections.abc import Sequence

from powerlab.analysis.comparison import Ratio
from powerlab.analysis.dimensions import pair_words
from powerlab.analysis.sets import RunSet, SetComparison
from powerlab.analysis.wording import ratio_words, verdict_words
from powerlab.domain.quantity import METRICS
from powerlab.reports.blocks import Cell, Column, Figure, Grid


def ratio_table(compared: Sequence[SetComparison]) -> Grid:
    """Return the ratios point by point, and below those of a metric and set the ratio over all points."""
    matches = [match for one in compared for beside in one.against for match in beside.matches]
    name_of = pair_words(side.point for match in matches for side in (match.one, match.other))
    rows: list[tuple[Cell, ...]] = []
    for one in compared:
        title = f"{METRICS[one.metric].title}, {METRICS[one.metric].unit}"
        for beside in one.against:
            for match in beside.matches:
                kinds = dict.fromkeys(side.metric.provenance.value for side in (match.one, match.other) if side.metric)
                rows.append(
                    (
                        title,
                        beside.label,
                        name_of(match.one.point, match.other.point),
                        Figure(metric=match.other.metric),
                        Figure(metric=match.one.metric),
                        *(_words(match.ratio, claimed=match.claimed) if match.ratio else (match.reason, "")),
                        " and ".join(kinds),
                    )
                )
            if len(beside.matches) > 1 and beside.whole is not None:
                said = _words(beside.whole, claimed=beside.claimed)
                kind = beside.whole.provenance.value
                nothing = Figure(metric=None)
                rows.append((title, beside.label, f"all {len(beside.matches)} points", nothing, nothing, *said, kind))
    return Grid(
        name="ratios",
        caption="Every set's figures over the baseline's, point by point and over all points, with 95 % intervals.",
        columns=(
            Column(title="figure"),
            Column(title="set"),
            Column(title="point"),
            Column(title="baseline", figures=True),
            Column(title="set's figure", figures=True),
            Column(title="ratio", under="set / baseline"),
            Column(title="the set is"),
            Column(title="provenance"),
        ),
        rows=tuple(rows),
    )


def rule(sets: Sequence[RunSet]) -> str:
    """Return what is in the ratios' intervals, and when a difference is claimed."""
    base = sets[0].devices
    shares = [len(base) == 1 and one.devices == base for one in sets[1:]]
    if all(shares):
        sensors = "All sets are of one device, so the errors of its sensors that both share are left out of the ratios."
    elif not any(shares):
        sensors = "The sets are not of the baseline's device, so the errors of both sensors are in the ratios."
    else:
        same = ", ".join(one.label for one, shared in zip(sets[1:], shares, strict=True) if shared)
        sensors = (
            f"The errors of sensors that both share are left out of the ratios of {same}, which the baseline's device "
            "made; in the others the errors of both sensors are contained."
        )
    return (
        f"{sensors} A difference is claimed only where it stands after correction for all comparisons of a figure "
        "(Holm, 1979). Ratios of different sweeps include any drift of the device between them."
    )


def _words(ratio: Ratio, *, claimed: bool) -> tuple[str, str]:
    return ratio_words(ratio), verdict_words(ratio, claimed=claimed)
