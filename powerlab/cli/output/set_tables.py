"""Sets of runs beside each other: tables, sentences and a document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from rich.console import Console
from rich.text import Text

from powerlab.analysis.comparable import compare_by, left_out
from powerlab.analysis.comparison import Ratio
from powerlab.analysis.covariates import corrected_ratio
from powerlab.analysis.dimensions import pair_words
from powerlab.analysis.set_wording import corrections, covariates, headline, mixtures, surroundings
from powerlab.analysis.sets import RunSet, SetComparison
from powerlab.analysis.verdict import Decision
from powerlab.analysis.wording import ratio_words, verdict_words
from powerlab.cli import EXIT_OK
from powerlab.cli.output.console import plain_table, print_neatly, table_console
from powerlab.cli.output.match_tables import CORRECTED, UNPAIRED, figure_words, match_document
from powerlab.domain.quantity import METRICS


def compare_named(sets: Sequence[RunSet], names: Sequence[str], ignored: Sequence[str], *, as_json: bool) -> int:
    """Compare sets by some metrics and print the result; returns the exit status.

    Raises:
        PowerlabError: no point of the first set is in another one, or none has a figure.
    """
    compared = compare_by(sets, names, ignored)
    if as_json:
        print(msgspec.json.format(msgspec.json.encode(_document(sets, compared)), indent=2).decode())
    else:
        _show(sets, compared, ignored)
    return EXIT_OK


def _show(sets: Sequence[RunSet], compared: Sequence[SetComparison], ignored: Sequence[str]) -> None:
    console = table_console()
    console.print(f"Baseline: {sets[0].label}")
    console.print()
    for one in compared:
        _show_metric(console, one)
    for about in surroundings(sets, compared[0]):
        print_neatly(console, Text(about.statement), *([Text(f"  {about.caution}")] if about.caution else []))
    for line in (*left_out(sets, ignored), *mixtures(sets)):
        print_neatly(console, Text(line))
    for line in corrections(compared):
        print_neatly(console, Text(f"  {line}"))
    console.print(CORRECTED)
    if any(_unpaired(match.ratio) for one in compared for beside in one.against for match in beside.matches):
        console.print(UNPAIRED)


def _show_metric(console: Console, one: SetComparison) -> None:
    kind = METRICS[one.metric]
    console.print(f"{kind.title} ({kind.unit}, {'higher' if kind.higher_is_better else 'lower'} is better)")
    table = plain_table("set", "point", "figure", "baseline", "ratio (95 % CI)", "verdict")
    matches = [match for beside in one.against for match in beside.matches]
    named = pair_words(side.point for match in matches for side in (match.one, match.other))
    for beside in one.against:
        for match in beside.matches:
            ratio = (match.reason, "") if match.ratio is None else _cells(match.ratio, claimed=match.claimed)
            figures = (figure_words(match.one), figure_words(match.other))
            table.add_row(beside.label, named(match.one.point, match.other.point), *figures, *ratio)
        if len(beside.matches) > 1 and beside.whole is not None:
            all_points = f"all {len(beside.matches)} points"
            table.add_row(beside.label, all_points, "", "", *_cells(beside.whole, claimed=beside.claimed))
    print_neatly(console, table, Text(headline(one)))
    console.print()


def _cells(ratio: Ratio, *, claimed: bool) -> tuple[str, str]:
    return ratio_words(ratio), verdict_words(ratio, claimed=claimed)


def _unpaired(ratio: Ratio | None) -> bool:
    return ratio is not None and not ratio.paired


def _document(sets: Sequence[RunSet], compared: Sequence[SetComparison]) -> dict[str, Any]:
    """Return the comparison as JSON-compatible values."""
    found: dict[str, Any] = msgspec.to_builtins(
        {
            "sweeps": list(dict.fromkeys(run.sweep_id for one in sets for run in one.runs)),
            "baseline": sets[0].label,
            "sets": [{"label": one.label, "run_count": len(one.runs)} for one in sets],
            "matches": [
                {"set": beside.label, **match_document(match)}
                for one in compared
                for beside in one.against
                for match in beside.matches
            ],
            "wholes": [
                {
                    "metric": one.metric,
                    "set": beside.label,
                    "ratio": beside.whole,
                    "claimed": beside.claimed,
                    "at_equal_temperature": corrected_ratio(*beside.blocks, one.metric),
                }
                for one in compared
                for beside in one.against
            ],
            "best": [
                {
                    "metric": one.metric,
                    "sets": one.labels,
                    "decision": Decision.NOT_ENOUGH_DATA if one.standing is None else one.standing.decision,
                    "statement": headline(one),
                    "missing_repeats": 0 if one.standing is None else one.standing.missing_repeats,
                }
                for one in compared
            ],
            "covariates": [{"set": beside.label, "differences": covariates(beside)} for beside in compared[0].against],
        }
    )
    return found
