"""What ``powerlab apply`` says: what was set, how to go back, and how to run the model at the point."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, replace

import msgspec

from powerlab.domain.mode import CURRENT_MODE, CURRENT_MODE_NAME, PowerMode, Setting
from powerlab.domain.sweep import Point, SweepPlan
from powerlab.domain.workload import Workload
from powerlab.reports.reproduce import plan_of_point, profile_command


def as_json(point: Point, settings: Sequence[Setting]) -> str:
    """Return what was set, for machines."""
    document = {
        "point_id": point.id,
        "point": msgspec.to_builtins(point),
        "settings": [asdict(setting) for setting in settings],
    }
    return json.dumps(document, indent=2)


def say_kept(mode: PowerMode, board: str | None, root: str) -> str:
    """Return how long the mode stays.

    Args:
        mode: what was set.
        board: the simulated board, which ends with the command; None where there is none.
        root: the option that names the device for another command.
    """
    if mode is CURRENT_MODE:
        return "It was measured with the settings as they were then, so nothing was set."
    if board is not None:
        return (
            f"{mode.name} was set on a simulated board that ends now; `powerlab boards simulate {board} DIR` makes one "
            "that stays."
        )
    return f"{mode.name} is set; `powerlab modes restore{root}` goes back."


def how_to_run(point: Point, board: str | None, root: str) -> str:
    """Return how to run the model at the point, and how to measure that again."""
    here = replace(point, mode=CURRENT_MODE_NAME)  # which is set now
    plan = plan_of_point(SweepPlan(models=(), threads=()), here)
    again = profile_command(plan, board) + (root if board is None and plan.nodes == 1 else "")
    return f"Run it with {_knobs(point)}.\nMeasure it again: {again}"


def _knobs(point: Point) -> str:
    load = point.workload
    said = [f"threads={point.threads}", f"batch_size={load.batch_size}"]
    usual = Workload(model=load.model, batch_size=load.batch_size)
    said += [
        f"{name}={getattr(load, name)}"
        for name in ("engine", "processor", "precision", "slices", "queues", "optimizer")
        if getattr(load, name) != getattr(usual, name)
    ]
    said += ["recompute=True"] if load.recomputes else []
    said += [f"spin_us={point.spin_us}"] if point.spin_us is not None else []
    said += [f"the cores {point.cores}"] if point.cores else []
    return ", ".join(said)
