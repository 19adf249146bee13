"""Operating points as ``powerlab best`` prints them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from powerlab.analysis.dimensions import in_words, varying
from powerlab.analysis.operating_point.bounds import Fit
from powerlab.analysis.operating_point.candidates import Held
from powerlab.analysis.operating_point.devices import DeviceAnswer
from powerlab.analysis.operating_point.question import Question
from powerlab.analysis.operating_point.records import Answer, AtRate, BoundCost, OpenPoint
from powerlab.analysis.operating_point.words import NO_BOUND_COSTS, NO_OTHER_COSTS, cost_words
from powerlab.analysis.verdict import Decision
from powerlab.analysis.wording import counted, ratio_words
from powerlab.cli.output.console import plain_table, print_neatly, table_console
from powerlab.cli.output.operating_changes import change_words
from powerlab.cli.output.sweep_table import format_figure, format_number
from powerlab.domain.quantity import METRICS, Metric
from powerlab.domain.sweep import Point

_GOAL_WORDS = {
    "energy": "least energy per image",
    "throughput": "highest throughput",
    "latency": "lowest 99th percentile latency",
    "battery": "longest battery life",
}
_MOST_OPEN = 5
_ASSUMED = (
    "Between images the device idles in the same power mode. Images wait for no other ones: queueing is not predicted."
)

_AMONG_MANY = "An interval without 1 is no winner by itself: not significant among so many comparisons (Holm, 1979)."


def show(found: Sequence[DeviceAnswer], question: Question, apply_command: str) -> None:
    """Print the answers of every device.

    Args:
        found: the answers.
        question: what was asked.
        apply_command: what sets the best point's power mode.
    """
    console = table_console()
    for index, device in enumerate(found):
        simulated = ", simulated" if device.simulated else ""
        sweeps = f"sweep{'s' * (len(device.sweep_ids) > 1)} {', '.join(device.sweep_ids)}"
        heading = f"{device.device_name}{simulated}: {device.run_count} runs of {sweeps}"
        parts: list[RenderableType] = [Text()] if index else []
        parts.append(Text(heading, style="bold"))
        if device.problem:
            parts.append(Text(device.problem[0].upper() + device.problem[1:]))
        for answer in device.answers:
            parts += [Text(), *_answer(answer, question)]
        print_neatly(console, *parts)
    if any(answer.best is not None for device in found for answer in device.answers):
        print_neatly(console, Text(), Text(f"Set its power mode here: {apply_command}"))


def _answer(answer: Answer, question: Question) -> Iterator[RenderableType]:
    rate = question.rate_img_per_s
    arriving = "always busy" if rate is None else f"{rate:g} img/s arriving"
    yield Text(f"{answer.work}: {_GOAL_WORDS[answer.goal]}, {arriving}")
    if answer.best is None:
        yield Text(answer.statement[0].upper() + answer.statement[1:])
    else:
        yield Text(f"Best: {in_words(answer.best.point)}", style="bold")
        yield Text(f"{_figure(answer.best.figure)} ({answer.provenance}); {answer.statement}.")
    named = varying(_points(answer))
    if answer.held:
        table = plain_table("bound", "figure", "verdict")
        for held in answer.held:
            table.add_row(held.bound.words, _sourced(held.figure), _fit(held))
        yield from (Text(), table)
    if answer.tied:
        table = plain_table(f"{_unbeaten(answer)} it", "figure", "ratio of the best to it (95 % CI)")
        for rated in answer.tied:
            table.add_row(
                named(rated.point), _figure(rated.figure), "" if rated.ratio is None else ratio_words(rated.ratio)
            )
        yield from (Text(), table)
        if any(rated.ratio is not None and rated.ratio.differs for rated in answer.tied):
            yield Text(_AMONG_MANY)
    if answer.open_points:
        yield from _open_points(answer, named)
    if answer.costs:
        yield from (Text(), *map(Text, _costs(answer.costs, named)))
    if answer.rates:
        yield from _rates(answer, question, named)
        yield from (Text(sentence) for change in answer.changes if (sentence := change_words(change, named)))
        yield Text(_ASSUMED)
    if answer.scope:
        yield Text(f"Power covers: {answer.scope}.")


def _points(answer: Answer) -> list[Point]:
    rated = [answer.best, *answer.tied, *(one.rated for one in answer.open_points)]
    rated += [*(cost.without for cost in answer.costs), *(row.rated for row in answer.rates)]
    changes = [point for change in answer.changes for point in (change.below, change.above)]
    return [one.point for one in rated if one is not None] + changes


def _figure(figure: Metric | None) -> str:
    return format_figure(figure) if figure is None else f"{format_figure(figure)} {METRICS[figure.name].unit}"


def _sourced(figure: Metric | None) -> str:
    return _figure(figure) if figure is None else f"{_figure(figure)} {figure.provenance}"


def _fit(held: Held) -> str:
    if held.fit is not Fit.OPEN:
        return f"{held.fit}"
    if held.repeats is None:
        return "open: no number of repeats would settle it"
    return f"open: about {held.repeats} repeats may settle it"


def _open_points(answer: Answer, named: Callable[[Point], str]) -> Iterator[RenderableType]:
    """Yield the points that may keep the bounds, with what would settle that."""
    title = "may be better" if answer.best is not None else "may keep the bounds"
    table = plain_table(title, "figure", "open bound", "its figure", "verdict")
    for one in answer.open_points[:_MOST_OPEN]:
        for row in _open_rows(one, named):
            table.add_row(*row)
    yield from (Text(), table)


def _open_rows(one: OpenPoint, named: Callable[[Point], str]) -> Iterator[tuple[str, ...]]:
    for held in one.held:
        if held.fit is Fit.OPEN:
            yield (
                named(one.rated.point),
                _figure(one.rated.figure),
                held.bound.words,
                _sourced(held.figure),
                _fit(held),
            )


def _costs(costs: Sequence[BoundCost], named: Callable[[Point], str]) -> Iterator[str]:
    """Yield what each bound costs; several that cost nothing share a sentence."""
    free = [cost for cost in costs if cost.without is None]
    for cost in costs:
        other = cost.without
        if other is not None:
            yield cost_words(cost, f"{named(other.point)}, {_figure(other.figure)}")
    if len(free) > 1:
        yield NO_BOUND_COSTS if len(free) == len(costs) else NO_OTHER_COSTS
    elif free:
        yield cost_words(free[0], "")


def _unbeaten(answer: Answer) -> str:
    """Return how to speak of the points that are not shown to be worse."""
    return "cannot be told from" if answer.decision is Decision.NOT_ENOUGH_DATA else "tied with"


def _rates(answer: Answer, question: Question, named: Callable[[Point], str]) -> Iterator[RenderableType]:
    rows = answer.rates
    battery, source = question.battery_wh, rows[0].rated.figure.provenance
    hours = () if battery is None else (f"hours on {battery:g} Wh",)
    table = plain_table(
        "img/s arriving", "least energy with", f"J/img {source}", f"mean W {source}", *hours, _unbeaten(answer)
    )
    for row in rows:
        life = () if battery is None else (_hours(row),)
        tied = counted(row.tied, "point") if row.tied else ""
        table.add_row(
            f"{row.rate_img_per_s:.4g}",
            named(row.rated.point),
            format_figure(row.rated.figure),
            format_figure(row.power),
            *life,
            tied,
        )
    yield from (Text(), table)


def _hours(row: AtRate) -> str:
    if row.hours is None:
        return format_figure(None)
    if row.hours_low is None or row.hours_high is None:
        return format_number(row.hours, 3)
    return f"{format_number(row.hours, 3)} ({format_number(row.hours_low, 3)}–{format_number(row.hours_high, 3)})"
