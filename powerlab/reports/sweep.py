"""The report of one sweep."""

from __future__ import annotations

from collections.abc import Iterator

from powerlab import __version__
from powerlab.analysis.budget import limit
from powerlab.analysis.summary import PointSummary
from powerlab.reports.answer import verdicts
from powerlab.reports.blocks import Block, Bullets, Code, Document, Facts, Paragraph, Section, Verdicts
from powerlab.reports.citation import bibtex
from powerlab.reports.conditions import facts
from powerlab.reports.figures.registry import pictures_of
from powerlab.reports.method import paragraphs
from powerlab.reports.reproduce import profile_command
from powerlab.reports.subject import Subject, check_worth_a_report
from powerlab.reports.tables import budget_table, front_table, points_table
from powerlab.reports.text import counted
from powerlab.reports.validity import findings, none_valid, verdict_counts


def sweep_report(subject: Subject) -> Document:
    """Return the report.

    Raises:
        PowerlabError: no run of the sweep has figures that may be used.
    """
    check_worth_a_report(subject)
    sections = (
        Section(title="Answer", blocks=(Verdicts(verdicts(subject)), Paragraph(verdict_counts(subject.runs)))),
        Section(title="Points", blocks=(points_table(subject), *_front(subject))),
        Section(title="Figures", blocks=tuple(pictures_of(subject.summaries))),
        Section(title="Device and conditions", blocks=(Facts(facts(subject)),)),
        Section(title="Uncertainty", blocks=tuple(_uncertainty(subject))),
        Section(title="Validity", blocks=(Paragraph(verdict_counts(subject.runs)), *_findings(subject))),
        Section(title="Method", blocks=tuple(map(Paragraph, paragraphs(subject))), for_papers=True),
        Section(title="Reproduce", blocks=reproduce(subject)),
    )
    return Document(
        title=f"{subject.models} on {subject.device_name}",
        lead=(
            f"{none_valid(subject.runs)}"
            f"{counted(len(subject.summaries), 'point')}, {counted(len(subject.runs), 'run')}, {subject.date}"
            f"{'; a simulated board, so every figure is simulated' if subject.simulated else ''}"
        ),
        sections=tuple(section for section in sections if section.blocks),
        citations=bibtex(subject),
        footer=f"Sweep {subject.sweep_id}. Written by powerlab {__version__}.",
    )


def _front(subject: Subject) -> tuple[Block, ...]:
    table = front_table(subject)
    return () if table is None else (table,)


def _uncertainty(subject: Subject) -> Iterator[Block]:
    """Yield the main uncertainty of the point that is best at something, and where it comes from."""
    point = _budgeted(subject)
    table = None if point is None else budget_table(subject, point)
    if point is None or table is None:
        yield Paragraph("There is no uncertainty budget, because no run has figures of power.")
        return
    lines = [limit(point.budget, name) for name in ("power_w", "energy_per_image_j")]
    yield Bullets(tuple(filter(None, lines)))
    yield table


def _budgeted(subject: Subject) -> PointSummary | None:
    """Return the most efficient point that has a budget."""
    best = [one.summary for one in subject.best if one.goal == "efficiency"]
    return next((one for one in [*best, *subject.summaries] if one.budget), None)


def _findings(subject: Subject) -> tuple[Block, ...]:
    found = findings(subject.runs)
    return (Bullets(found),) if found else (Paragraph("The validity rules found nothing to object to."),)


def reproduce(subject: Subject) -> tuple[Block, ...]:
    """Return how to measure it again, and how to check it."""
    board = None
    if subject.simulated:
        board = subject.device.board if subject.device else subject.device_name.removeprefix("simulated-")
    check = f"powerlab bundle create {subject.short_id}"
    return (
        Paragraph("Measure the same points again:"),
        Code(profile_command(subject.plan, board), "console"),
        Paragraph(
            "Pack the raw records, so that others can recompute every figure (`powerlab bundle verify`) or repeat the "
            "sweep and compare (`powerlab bundle rerun`):"
        ),
        Code(check, "console"),
    )
