"""A gate's report in words, the same for a terminal and for a pull request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from powerlab.analysis.dimensions import varying
from powerlab.analysis.gate.gate import GateReport, GateRow, GateVerdict
from powerlab.analysis.gate.loss import Loss
from powerlab.analysis.trends.versions import Difference
from powerlab.cli.output.sweep_table import ABSENT, format_number
from powerlab.domain.quantity import METRICS

HEADINGS = ("point", "metric", "baseline", "change", "loss (95 % CI)", "verdict")
_DIGITS = 4
_MOST_NAMED = 5


def percent(part: float) -> str:
    """Return a part as ``2.5 %``."""
    return f"{100 * part:.2g} %"


def headline(report: GateReport, title: str) -> str:
    """Return the verdict in one sentence."""
    count = {verdict: sum(row.verdict is verdict for row in report.rows) for verdict in GateVerdict}
    of = f"of {len(report.rows)} figures of {title}"
    limit = percent(report.max_loss)
    if report.verdict is GateVerdict.LOSS:
        return f"Loss: {count[GateVerdict.LOSS]} {of} became worse, by best estimate by more than {limit}."
    if report.verdict is GateVerdict.PASS:
        return f"Pass: a loss of {limit} is ruled out for all {len(report.rows)} figures of {title}."
    return f"Not enough data: for {count[GateVerdict.OPEN]} {of} a loss of {limit} is neither shown nor ruled out."


def loss_words(loss: Loss | None) -> str:
    """Return ``3.1 % (2.2 to 4.0)``; a gain is negative."""
    if loss is None:
        return ABSENT
    low, high = loss.interval()
    decimals = 2 if high - low < 0.01 else 1
    value, low, high = (round(100 * part, decimals) + 0.0 for part in (loss.part, low, high))  # + 0.0: no "-0.0"
    return f"{value:.{decimals}f} % ({low:.{decimals}f} to {high:.{decimals}f})"


def cells(report: GateReport) -> Iterator[tuple[str, ...]]:
    """Yield the cells of each row, in the order of :data:`HEADINGS`."""
    name_of = varying(row.point for row in report.rows)
    for row in report.rows:
        yield _cells(row, name_of(row.point))


def _cells(row: GateRow, point: str) -> tuple[str, ...]:
    kind, values = METRICS[row.metric], (row.baseline, row.candidate)
    figures = [ABSENT if value is None else f"{format_number(value, _DIGITS)} {kind.unit}" for value in values]
    metric = f"{kind.title}, {row.provenance}" if row.provenance else kind.title
    verdict = f"{row.verdict}: {row.reason}" if row.reason else str(row.verdict)
    return (point, metric, *figures, loss_words(row.loss), verdict)


def remarks(report: GateReport, changed: Sequence[Difference]) -> Iterator[str]:
    """Yield what else there is to say, a sentence each: what to do, what was not judged, what differs."""
    if report.verdict is not GateVerdict.PASS:
        yield what_to_do(report)
    sides = (
        (len(report.baseline_sweeps), report.baseline_occasions),
        (
            len(report.candidate_sweeps),
            report.candidate_occasions,
        ),
    )
    counts = [f"{_counted(sweeps, 'sweep')} on {_counted(times, 'occasion')}" for sweeps, times in sides]
    yield f"Baseline: {counts[0]}. Change: {counts[1]}. Sweeps measured in one go are one occasion."
    if report.missing:
        name_of = varying((*report.missing, *(row.point for row in report.rows)))
        named = "; ".join(map(name_of, report.missing[:_MOST_NAMED]))
        more = len(report.missing) - _MOST_NAMED
        yield f"Not measured, though the baseline has it: {named}{f'; and {more} more' if more > 0 else ''}."
    if report.estimated:
        titles = ", ".join(METRICS[name].title.lower() for name in report.estimated)
        yield f"Not judged, because it is estimated here: {titles}."
    if changed:
        yield f"What differs: {'; '.join(map(str, changed))}."


def what_to_do(report: GateReport) -> str:
    """Return the sentence that says what to do next."""
    if report.verdict is GateVerdict.LOSS:
        return "Find the cause, or make these sweeps the baseline (`powerlab baseline set`) if the loss is intended."
    needed, reasons = report.sweeps_needed, [row for row in report.rows if row.reason]
    sides = (report.baseline_occasions, report.candidate_occasions)
    if any(row.loss is None and not row.reason for row in report.rows):
        return (
            "One occasion on each side does not show how much they differ: measure at least three sweeps of each, in "
            "turns; `powerlab gate --plan` says how many it takes."
        )
    if needed is None and not reasons:
        return "Sweeps of this device differ too much to find such a loss: make runs longer, or allow a larger loss."
    if needed is not None and needed > min(sides):
        return (
            f"Measure {needed} sweeps on each side, in turns: they find a loss of {percent(report.found_loss)} and let "
            "a change without one pass, with 95 % probability each."
        )
    if reasons:
        return "Measure the points without a figure again."
    return (
        "The loss is close to what may be, so that more sweeps than those planned are needed to tell: double them, or "
        "allow a larger loss."
    )


def _counted(count: int, one: str) -> str:
    return f"{count} {one}" if count == 1 else f"{count} {one}s"
