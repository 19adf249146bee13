"""The comparison with peers for people, as a table with sentences below, and for programs, as a document."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from bench.peers.ratios import OURS, Measured, Ratio, summary
from powerlab.measure.recording.background_load import background_limit_cores

ABSENT = "–"
BEST = "*"
_CAPTION = (
    "peer's time ÷ powerlab's, median of paired turns (quartiles): above 1 powerlab is faster; * marks the best peer"
)


def ratio_table(measured: Sequence[Measured], peers: Sequence[str]) -> Table:
    """Return a row a cell: the built-in engine's latency, and every peer's ratio."""
    table = Table(caption=_CAPTION, caption_justify="left", box=SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0))
    for header in ("model", "batch", "threads", "powerlab ms", *peers):
        table.add_column(header, justify="left" if header == "model" else "right", no_wrap=True)
    before = None
    for one in measured:
        cell = one.cell
        if before not in {None, cell.model}:
            table.add_section()
        name = cell.model if cell.model != before else ""
        before = cell.model
        ours = f"{statistics.median(one.turns_ms[OURS]):.2f}" if OURS in one.turns_ms else ABSENT
        best = one.best[0] if one.best else None
        ratios = (Text(_shown(one.ratios.get(peer), peer == best), "bold" if peer == best else "") for peer in peers)
        table.add_row(name, str(cell.batch_size), str(cell.threads), ours, *ratios)
    return table


def _shown(ratio: Ratio | None, best: bool) -> str:
    if ratio is None:
        return ABSENT
    return f"{BEST if best else ''}{ratio.median:.2f} ({ratio.low:.2f}–{ratio.high:.2f})"


def sentences(measured: Sequence[Measured]) -> Iterator[str]:
    """Yield what all cells say together, and who took no part where and why."""
    found = summary(measured)
    if found is None:
        yield "Nothing could be compared."
    else:
        ratio = found.smallest_ratio
        yield (
            f"Geometric mean over {found.cells} cells against the best peer of each: {found.geometric_mean:.3f}. "
            f"Smallest: {ratio.median:.3f} ({ratio.low:.2f}–{ratio.high:.2f}), {found.smallest} against "
            f"{found.smallest_peer}. Outputs differ by {found.largest_difference:.1e} of the largest at most."
        )
    if noisy := [one for one in measured if one.others_cores > background_limit_cores()]:
        most = max(one.others_cores for one in noisy)
        yield (
            f"Other programs kept up to {most:.1f} cores busy in {len(noisy)} of {len(measured)} cells; "
            "measure again on a quiet machine."
        )
    if alone := [str(one.cell) for one in measured if one.one_at_a_time]:
        yield (
            f"One engine at a time was loaded, and anew for its turns, in {', '.join(alone)}: "
            "the memory does not hold all of them."
        )
    reasons: dict[tuple[str, str], list[str]] = {}
    for one in measured:
        for engine, reason in one.absent.items():
            reasons.setdefault((engine, reason), []).append(str(one.cell))
    for (engine, reason), cells in reasons.items():
        yield f"{engine} takes no part in {', '.join(cells)}: {reason.rstrip('.')}."


def document(measured: Sequence[Measured], facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return everything that was seen, ready for JSON.

    Args:
        measured: the cells.
        facts: when and where it was measured; they come first in the document.
    """
    found = summary(measured)
    return {
        **facts,
        "summary": None if found is None else asdict(found),
        "cells": [
            {
                **asdict(one.cell),
                "rounds": one.rounds,
                "others_cores": one.others_cores,
                "one_at_a_time": one.one_at_a_time,
                "best_peer": one.best[0] if one.best else None,
                "engines": {engine: _engine(one, engine) for engine in one.turns_ms},
                "absent": dict(one.absent),
            }
            for one in measured
        ],
    }


def _engine(one: Measured, engine: str) -> dict[str, Any]:
    turns_ms = one.turns_ms[engine]
    found: dict[str, Any] = {
        "latency_ms": {"min": one.least_ms[engine], "median": statistics.median(turns_ms)},
        "turns_ms": list(turns_ms),
    }
    if engine in one.ratios:
        found["ratio"] = asdict(one.ratios[engine])
        difference = one.differences[engine]
        found["largest_difference"] = difference if math.isfinite(difference) else None
    return found
