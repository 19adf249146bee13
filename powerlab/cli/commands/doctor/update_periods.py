"""The doctor's section on what rails were seen to do while they were watched."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from powerlab.cli.output.page import Page, figures, scaled, some


def show_watched(page: Page, found: Mapping[str, Any], most: int | None) -> None:
    """Write the section, with so many rails; None: with all."""
    watched = found["watched"]
    page.heading(f"What the rails were seen to do in {scaled(found['watched_s'], 's')}")
    if not watched:
        page.say("There is no rail to watch.")
        return
    rows = [_seen(one) for one in watched[:most]]
    page.show(figures(("rail", "says every", "seen every", "stood still for", "a read takes", "failed"), rows))
    if most is not None and len(watched) > most:
        page.say(f"and {len(watched) - most} more: `powerlab doctor --watch --all` lists all.")
    slower = [one["rail"] for one in watched if one["reckoned_period_s"] > one["stated_period_s"]]
    if slower:
        page.say(f"A sweep reckons with the longer period, the seen one: {some(slower, 4, ', ', ' and {} more')}.")
    still = [one["rail"] for one in watched if one["readings"] and one["values"] == 1]
    if still:
        names = some(still, 4, ", ", " and {} more")
        page.say(f"Never changed: {names}. Rightly so where nothing happens there; under load it would be stale.")


def _seen(one: Mapping[str, Any]) -> tuple[str, ...]:
    period_s, cost_us = one["update_period_s"], one["read_cost_us"]
    return (
        one["rail"],
        scaled(one["stated_period_s"], "s") if one["stated_period_s"] else "read",
        "read" if one["at_every_read"] else "too few changes" if period_s is None else scaled(period_s, "s"),
        scaled(one["longest_unchanged_s"], "s"),
        "no read worked" if cost_us is None else scaled(cost_us * 1e-6, "s"),
        str(one["failed_reads"] or "–"),
    )
