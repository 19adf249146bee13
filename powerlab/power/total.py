"""The total: which rails add up to the board's power."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from powerlab.boards.board import Board
from powerlab.domain.power import TOO_LOW, WITHOUT_CARDS, Availability, Rail, SourceProbe, TotalFormula
from powerlab.power.proposals import PROPOSALS, STAND_INS, cards_alone, of_one_provenance, proposed

ESTIMATE_SOURCE = "estimate"
METER_SOURCE = "meter"


def choose_total(probes: Sequence[SourceProbe], board: Board | None) -> TotalFormula | None:
    """Return the formula of the device's power, None where no rail can be read.

    A wall meter that somebody connected and configured comes first: it sees all there is. Then the board's own formula
    holds where every one of its rails can be read. Where some can, they are proposed, and the
    scope says what is missing; where none can, that source is not guessed with, for its other rails may lie inside each
    other or on the carrier board. For an unknown board a formula is proposed from what is there, and marked so.
    Measured and estimated rails are never added.
    """
    rails = [rail for probe in probes if probe.availability is Availability.AVAILABLE for rail in probe.rails]
    sensors = [rail for rail in rails if rail.source != ESTIMATE_SOURCE]
    if formula := _wall_meter(probes):
        return formula
    if board is not None and board.total is not None:
        own = _expanded(board.total, sensors)
        if of_one_provenance(own, sensors):
            return own
        if formula := _stood_in_for(own, sensors) or _remains(own, sensors):
            return formula
        sources = {key.partition(":")[0] for key in own.rails}
        sensors = [rail for rail in sensors if rail.source not in sources]
    for propose in PROPOSALS:
        if formula := propose(sensors):
            return _warned(formula, probes)
    estimates = tuple(rail.key for rail in rails if rail.source == ESTIMATE_SOURCE)
    if estimates:
        why = f"no sensor {'of it ' if sensors else ''}can be read"
        return TotalFormula(
            rails=estimates,
            scope=f"processor and memory of the host, estimated from load: {why}; {WITHOUT_CARDS}",
            proposed=True,
        )
    return None


def total_of_plan(total: TotalFormula | None, rails: Sequence[Rail], on_cards: bool) -> TotalFormula | None:
    """Return the formula for a plan: the device's, or where that lacks the cards that compute, the cards alone.

    Args:
        total: the device's.
        rails: what can be read.
        on_cards: whether the plan computes on graphics cards and nothing else.
    """
    if not on_cards or not (total is None or total.lacks_cards):
        return total
    return cards_alone(rails) or total


def _wall_meter(probes: Iterable[SourceProbe]) -> TotalFormula | None:
    for probe in probes:
        if probe.source == METER_SOURCE and probe.availability is Availability.AVAILABLE:
            return TotalFormula(
                rails=tuple(rail.key for rail in probe.rails),
                scope=f"the external meter at {probe.detail}",
            )
    return None


def _expanded(formula: TotalFormula, rails: Sequence[Rail]) -> TotalFormula:
    """Put the names of the rails that are there in the place of one that ends in ``*``."""
    keys: list[str] = []
    for key in formula.rails:
        found = [rail.key for rail in rails if key.endswith("*") and rail.key.startswith(key[:-1])]
        keys += found or [key]
    return replace(formula, rails=tuple(keys))


def _stood_in_for(formula: TotalFormula, rails: Sequence[Rail]) -> TotalFormula | None:
    """Return the same formula over another source that reads the same rails by the same names, where one has all."""
    for source in STAND_INS:
        twin = replace(formula, rails=tuple(f"{source}:{key.partition(':')[2]}" for key in formula.rails))
        if of_one_provenance(twin, rails):
            return replace(twin, scope=f"{formula.scope}; as {source} tells it")
    return None


def _warned(formula: TotalFormula, probes: Iterable[SourceProbe]) -> TotalFormula:
    """Say in the scope where a source has more rails than this user may read: one of them may be missing."""
    sources = {key.partition(":")[0] for key in formula.rails}
    denied = [probe.detail for probe in probes if probe.source in sources and probe.rails and probe.remedy]
    return replace(formula, scope="; ".join([formula.scope, *(f"perhaps too low: {detail}" for detail in denied)]))


def _remains(formula: TotalFormula, rails: Iterable[Rail]) -> TotalFormula | None:
    """Return what is left of a board's formula where some of its rails cannot be read."""
    found = [rail for rail in rails if rail.key in formula.rails]
    missing = sorted(set(formula.rails) - {rail.key for rail in found})
    names = ", ".join(key.partition(":")[2] for key in missing)
    return proposed(found, f"{formula.scope}; {TOO_LOW} {names} cannot be read")
