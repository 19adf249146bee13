"""The report of sets of runs compared: what each gains or loses against the first."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from powerlab import __version__
from powerlab.analysis.comparable import compare_by, left_out
from powerlab.analysis.set_wording import corrections, headline, mixtures, surroundings
from powerlab.analysis.sets import RunSet, SetComparison
from powerlab.analysis.wording import verdict_words
from powerlab.domain.model_name import short
from powerlab.domain.quantity import METRICS
from powerlab.reports.blocks import Block, Bullets, Code, Document, Facts, Paragraph, Section
from powerlab.reports.citation import bibtex
from powerlab.reports.conditions import facts
from powerlab.reports.figures.registry import pictures_of
from powerlab.reports.method import paragraphs
from powerlab.reports.ratios import ratio_table, rule
from powerlab.reports.subject import Subject, check_worth_a_report
from powerlab.reports.text import counted
from powerlab.reports.validity import findings, none_valid, verdict_counts

COMPARED = (
    "latency_p50_ms",
    "latency_p99_ms",
    "server_queries_per_s",
    "throughput_img_per_s",
    "power_w",
    "energy_per_image_j",
    "efficiency_img_per_s_per_w",
)
"""What is compared where nobody names metrics; those without any figure are left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedSet:
    """A set of runs, and the sweeps that they are of.

    Attributes:
        runs: the set.
        sweeps: at least one, each whole.
    """

    runs: RunSet
    sweeps: tuple[Subject, ...]

    @property
    def subject(self) -> Subject:
        """Its runs as if they were of one sweep, for what is said of the set as a whole."""
        devices = dict.fromkeys(one.device_name for one in self.sweeps)
        return replace(
            self.sweeps[0],
            device_name=", ".join(devices),
            simulated=all(one.simulated for one in self.sweeps),
            runs=self.runs.runs,
            device=self.sweeps[0].device if len(devices) == 1 else None,
        )


def comparison_report(
    sets: Sequence[ReportedSet], ignored: Sequence[str] = (), names: Sequence[str] = COMPARED
) -> Document:
    """Return the report.

    Args:
        sets: at least two; the first is the baseline.
        ignored: dimensions in which points may differ.
        names: the metrics.

    Raises:
        PowerlabError: a set has no usable figures, or nothing can be compared.
    """
    subjects = [one.subject for one in sets]
    run_sets = [one.runs for one in sets]
    for one, subject in zip(run_sets, subjects, strict=True):
        check_worth_a_report(subject, one.label)
    compared = [one for one in compare_by(run_sets, names, ignored) if _has_figures(one)]
    sweeps = list({sweep.sweep_id: sweep for one in sets for sweep in one.sweeps}.values())
    points = {match.other.point for beside in compared[0].against for match in beside.matches}
    sections = (
        Section(title="Answer", blocks=(Bullets(tuple(map(_answer, compared))),)),
        Section(title="Ratios", blocks=(ratio_table(compared), Paragraph(rule(run_sets)))),
        Section(title="What else was different", blocks=tuple(_circumstances(run_sets, compared, ignored))),
        *(
            _about(number, one.label, subject)
            for number, (one, subject) in enumerate(zip(run_sets, subjects, strict=True), start=1)
        ),
        Section(title="Method", blocks=tuple(map(Paragraph, _method(sweeps))), for_papers=True),
        Section(title="Reproduce", blocks=(Code(_command(run_sets, ignored), "console"),)),
    )
    labels = [one.label for one in run_sets]
    return Document(
        title=_title(subjects),
        lead=(
            f"{none_valid([run for one in run_sets for run in one.runs])}"
            f"{', '.join(labels[1:])} against {labels[0]}, {counted(len(points), 'point')} in common"
            f"{'; simulated boards, so every figure is simulated' if all(one.simulated for one in subjects) else ''}"
        ),
        sections=tuple(section for section in sections if section.blocks),
        citations=bibtex(*sweeps),
        footer=f"Sweeps {', '.join(sweep.sweep_id for sweep in sweeps)}. Written by powerlab {__version__}.",
    )


def _has_figures(one: SetComparison) -> bool:
    sides = (side for beside in one.against for match in beside.matches for side in (match.one, match.other))
    return any(side.metric is not None for side in sides)


def _title(subjects: Sequence[Subject]) -> str:
    models = ", ".join(dict.fromkeys(short(run.point.workload.model) for subject in subjects for run in subject.runs))
    devices = ", ".join(dict.fromkeys(subject.device_name for subject in subjects))
    return f"{models} on {devices}, {len(subjects)} sets of runs compared"


def _answer(one: SetComparison) -> str:
    """Return which set is best over all points, by the rule of every headline, and at how many each is better."""
    return " ".join([headline(one), *_counts(one)])


def _counts(one: SetComparison) -> Iterator[str]:
    """Yield at how many points each set is better; of one point the headline says all."""
    for beside in one.against:
        told = [
            verdict_words(match.ratio, claimed=match.claimed) for match in beside.matches if match.ratio is not None
        ]
        if not told:
            yield f"{METRICS[one.metric].title} of {beside.label}: nothing can be compared."
            continue
        if len(told) == 1:
            continue
        counts = Counter(
            next((word for word in ("better", "worse", "not enough data") if words.endswith(word)), "nothing to claim")
            for words in told
        )
        yield f"Of {len(told)} points of {beside.label}: {', '.join(f'{word} at {n}' for word, n in counts.items())}."


def _circumstances(
    sets: Sequence[RunSet], compared: Sequence[SetComparison], ignored: Sequence[str]
) -> Iterator[Block]:
    said = [*left_out(sets, ignored), *mixtures(sets)]
    said += [f"{about.statement} {about.caution}".strip() for about in surroundings(sets, compared[0])]
    said += corrections(compared)
    if said:
        yield Bullets(tuple(said))


def _about(number: int, label: str, subject: Subject) -> Section:
    blocks: list[Block] = [Facts(facts(subject)), Paragraph(verdict_counts(subject.runs))]
    if found := findings(subject.runs):
        blocks.append(Bullets(found))
    blocks += (picture.renamed(f"set-{number}-{picture.name}") for picture in pictures_of(subject.summaries))
    return Section(title=f"{'Baseline' if number == 1 else f'Set {number}'}: {label}", blocks=tuple(blocks))


def _method(sweeps: Sequence[Subject]) -> Iterator[str]:
    """Yield the method; what is not the same for all sweeps with those for which it holds."""
    for texts in zip(*map(paragraphs, sweeps), strict=True):
        holds: dict[str, list[str]] = {}
        for text, sweep in zip(texts, sweeps, strict=True):
            holds.setdefault(text, []).append(sweep.short_id)
        for text, ids in holds.items():
            yield text if len(holds) == 1 else f"Sweep{'s' * (len(ids) > 1)} {', '.join(ids)}: {text}"


def _command(sets: Sequence[RunSet], ignored: Sequence[str]) -> str:
    options = [word for title in ignored for word in ("--ignore", title)]
    return shlex.join(["powerlab", "report", *(one.label for one in sets), *options])
