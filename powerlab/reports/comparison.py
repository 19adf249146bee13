"""The report of two sweeps compared: what the second gains or loses against the first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from powerlab import __version__
from powerlab.analysis.dimensions import pair_words
from powerlab.analysis.matches import Match, between_sweeps
from powerlab.analysis.set_wording import headline
from powerlab.analysis.sets import RunSet, compare_sets
from powerlab.analysis.unmatched import nothing_in_common
from powerlab.analysis.wording import ratio_words, verdict_words
from powerlab.domain.errors import PowerlabError
from powerlab.domain.quantity import METRICS
from powerlab.reports.blocks import (
    Block,
    Bullets,
    Cell,
    Code,
    Column,
    Document,
    Facts,
    Figure,
    Grid,
    Paragraph,
    Section,
)
from powerlab.reports.citation import bibtex
from powerlab.reports.conditions import facts
from powerlab.reports.figures.registry import pictures_of
from powerlab.reports.method import paragraphs
from powerlab.reports.subject import Subject, check_worth_a_report
from powerlab.reports.text import counted
from powerlab.reports.validity import findings, verdict_counts

COMPARED = (
    "latency_p50_ms",
    "latency_p99_ms",
    "server_queries_per_s",
    "throughput_img_per_s",
    "power_w",
    "energy_per_image_j",
    "efficiency_img_per_s_per_w",
)


def comparison_report(first: Subject, second: Subject, ignored: Sequence[str] = ()) -> Document:
    """Return the report.

    Args:
        first: what is compared with.
        second: what is compared.
        ignored: dimensions in which points may differ.

    Raises:
        PowerlabError: a sweep has no usable figures, or the two have no point in common.
    """
    for subject in (first, second):
        check_worth_a_report(subject)
    one_device = (first.device_name, first.simulated) == (second.device_name, second.simulated)
    sets = [_as_set(one) for one in (first, second)]
    matches = [
        match
        for name in COMPARED
        for match in between_sweeps(second.runs, first.runs, name, one_device=one_device, ignored=ignored)
        if match.one.metric is not None or match.other.metric is not None
    ]
    if not matches:
        raise PowerlabError(nothing_in_common(sets[0], sets[1:], ignored))
    sections = (
        Section(title="Answer", blocks=(Bullets(tuple(_answer(matches, sets, ignored))),)),
        Section(title="Ratios", blocks=(_table(matches), Paragraph(_rule(one_device=one_device)))),
        *(_sweep(title, subject) for title, subject in (("First sweep", first), ("Second sweep", second))),
        Section(title="Method", blocks=tuple(Paragraph(text) for text in paragraphs(second)), for_papers=True),
        Section(title="Reproduce", blocks=(Code(f"powerlab report {first.short_id} {second.short_id}", "console"),)),
    )
    return Document(
        title=f"{second.models} on {second.device_name} against {first.models} on {first.device_name}"
        if not one_device
        else f"{second.models} on {second.device_name}, two sweeps compared",
        lead=(
            f"Second sweep {second.short_id} ({second.date}) against first sweep {first.short_id} ({first.date}), "
            f"{counted(len({match.one.point for match in matches}), 'point')} in common"
        ),
        sections=sections,
        citations=bibtex(first, second),
        footer=f"Sweeps {first.sweep_id} and {second.sweep_id}. Written by powerlab {__version__}.",
    )


def _as_set(subject: Subject) -> RunSet:
    devices = frozenset({(subject.device_name, subject.simulated)})
    return RunSet(label=f"sweep {subject.short_id}", runs=subject.runs, devices=devices)


def _answer(matches: Sequence[Match], sets: Sequence[RunSet], ignored: Sequence[str]) -> Iterator[str]:
    """Yield a sentence a metric: which sweep is best over all points, by the rule of every headline, and at how many.

    Without a ratio there is nothing to decide.
    """
    for name in dict.fromkeys(match.metric for match in matches):
        told = [
            verdict_words(match.ratio, claimed=match.claimed)
            for match in matches
            if match.metric == name and match.ratio is not None
        ]
        if not told:
            yield f"{METRICS[name].title}: nothing can be compared."
            continue
        better, worse = (sum(words.endswith(word) for words in told) for word in ("better", "worse"))
        counts = {"better": better, "worse": worse, "without a difference to claim": len(told) - better - worse}
        parts = [f"{words} at {count}" for words, count in counts.items() if count]
        said = headline(compare_sets(sets, name, ignored))
        yield f"{said} Of {counted(len(told), 'point')} the second sweep is {', '.join(parts)}."


def _table(matches: Sequence[Match]) -> Grid:
    name_of = pair_words(side.point for match in matches for side in (match.one, match.other))
    rows: list[tuple[Cell, ...]] = []
    for match in matches:
        ratio = match.ratio
        said = (
            (match.reason, "") if ratio is None else (ratio_words(ratio), verdict_words(ratio, claimed=match.claimed))
        )
        provenances = dict.fromkeys(side.metric.provenance.value for side in (match.one, match.other) if side.metric)
        rows.append(
            (
                f"{METRICS[match.metric].title}, {METRICS[match.metric].unit}",
                name_of(match.one.point, match.other.point),
                Figure(metric=match.other.metric),
                Figure(metric=match.one.metric),
                *said,
                " and ".join(provenances),
            )
        )
    return Grid(
        name="ratios",
        caption="The second sweep's figures over the first's, point by point, with 95 % intervals.",
        columns=(
            Column(title="figure"),
            Column(title="point"),
            Column(title="first", figures=True),
            Column(title="second", figures=True),
            Column(title="ratio", under="second / first"),
            Column(title="the second is"),
            Column(title="provenance"),
        ),
        rows=tuple(rows),
    )


def _rule(*, one_device: bool) -> str:
    shared = (
        "Both sweeps are of one device, so the errors of its sensors that both share are left out of the ratios."
        if one_device
        else "The sweeps are of two devices, so the errors of both sensors are in the ratios."
    )
    return (
        f"{shared} A difference is claimed only where it stands after correction for all comparisons of a figure "
        "(Holm, 1979). The ratios include any drift of the device between the sweeps."
    )


def _sweep(title: str, subject: Subject) -> Section:
    blocks: list[Block] = [Facts(facts(subject)), Paragraph(verdict_counts(subject.runs))]
    if found := findings(subject.runs):
        blocks.append(Bullets(found))
    prefix = title.partition(" ")[0].lower()
    blocks += (picture.renamed(f"{prefix}-{picture.name}") for picture in pictures_of(subject.summaries))
    return Section(title=title, blocks=tuple(blocks))
