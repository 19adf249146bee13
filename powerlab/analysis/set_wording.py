"""Sets of runs beside each other in sentences: who is best, what else differed, and what that may explain."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from powerlab.analysis.covariates import CovariateDifference, corrected_ratio, covariate_differences
from powerlab.analysis.sets import AgainstBaseline, RunSet, SetComparison
from powerlab.analysis.verdict import Decision
from powerlab.analysis.wording import counted, lead_words, repeat_commands
from powerlab.domain.quantity import METRICS

_TEMPERATURE = "°C"


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What else was different between a set and the baseline.

    Attributes:
        label: the set.
        differences: every covariate that both know.
        statement: their values in a sentence.
        caution: which of them may explain a part of the ratios; empty where none may.
    """

    label: str
    differences: tuple[CovariateDifference, ...]
    statement: str
    caution: str


def headline(one: SetComparison) -> str:
    """Return which set is best by a metric, and whether that is a winner, a tie, or not enough data."""
    title = METRICS[one.metric].title.partition(" (")[0].lower()
    stands = one.standing
    if stands is None:
        return f"Best {title}: not enough data: the sets have no point with this figure in common."
    best, *rivals = one.labels
    over = "" if one.place_count == 1 else f" over the {one.place_count} points in common"
    if stands.missing_repeats:
        words = f"not enough data: a claim takes 3 valid runs; add {counted(stands.missing_repeats, 'repeat')}"
        return f"Best {title}{over}: {best}; {words} ({repeat_commands(one.lacking)})."
    place = stands.unbeaten[0] if stands.unbeaten else 0
    if stands.decision is Decision.NOT_ENOUGH_DATA:
        place = next(place for place, ratio in enumerate(stands.ratios) if ratio is None or ratio.level is None)
    words = lead_words(
        stands.ratios[place],
        title,
        rivals[place],
        claimed=stands.beaten[place],
        rivals=len(rivals),
        unbeaten=len(stands.unbeaten),
    )
    return f"Best {title}{over}: {best}; {words}."


def covariates(beside: AgainstBaseline) -> tuple[CovariateDifference, ...]:
    """Return what else differs between a set and the baseline, over the points that both have."""
    return covariate_differences([(match.one.runs, match.other.runs) for match in beside.matches])


def surroundings(sets: Sequence[RunSet], one: SetComparison) -> Iterator[Surroundings]:
    """Yield of each set what else was different, and what that means for its ratios.

    Another device has other clocks by nature: there they are shown and no more.
    """
    for other, beside in zip(sets[1:], one.against, strict=True):
        found = covariates(beside)
        if not found:
            continue
        said = [f"{each.title} {each.one:.4g} {each.unit} (baseline {each.other:.4g})" for each in found]
        same = other.devices == sets[0].devices
        apart = [each.title for each in found if each.differs and (same or each.unit == _TEMPERATURE)]
        differ = "differs" if len(apart) == 1 else "differ"
        yield Surroundings(
            label=beside.label,
            differences=found,
            statement=f"{beside.label}: {', '.join(said)}.",
            caution=f"The {' and the '.join(apart)} {differ} beyond chance: part of a difference may come from that."
            if apart
            else "",
        )


def mixtures(sets: Sequence[RunSet]) -> Iterator[str]:
    """Yield of each set with runs of several devices that its figures are of none of them alone."""
    for one in sets:
        if len(one.devices) > 1:
            names = ", ".join(sorted(name for name, _ in one.devices))
            yield (
                f"{one.label} has runs of {counted(len(one.devices), 'device')} ({names}), and its figures are over "
                "all of them; add device=NAME to compare those of one."
            )


def corrections(compared: Sequence[SetComparison]) -> Iterator[str]:
    """Yield the ratios at equal temperature of the sets that did not begin equally warm."""
    for one in compared:
        for beside in one.against:
            warmer = any(each.differs and each.unit == _TEMPERATURE for each in covariates(beside))
            found = corrected_ratio(*beside.blocks, one.metric) if warmer else None
            if found is not None:
                yield (
                    f"{METRICS[one.metric].title} of {beside.label} at equal temperature, by a straight line of "
                    f"{found.percent_per_c:+.2g} % per °C: ratio {found.value:.3f}, 95 % CI "
                    f"{found.low:.3f}–{found.high:.3f}."
                )
