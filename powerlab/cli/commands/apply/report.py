"""What ``powerlab apply`` says: what was set, how to go back, and how to run the model at the point."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import asdict

import msgspec

from powerlab.domain.mode import CURRENT_MODE, PowerMode, Setting
from powerlab.domain.sweep import Point
from powerlab.domain.workload import Workload


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
    where = f" --board {board}" if board is not None else root
    lines = [f"Run it with {_knobs(point)}.", f"Measure it again: powerlab profile {_words(point)}{where}"]
    return "\n".join(lines)


def _knobs(point: Point) -> str:
    load = point.workload
    said = [f"threads={point.threads}", f"batch_size={load.batch_size}"]
    usual = Workload(model=load.model, batch_size=load.batch_size)
    said += [
        f"{name}={getattr(load, name)}"
        for name in ("engine", "processor", "precision", "slices", "optimizer")
        if getattr(load, name) != getattr(usual, name)
    ]
    said += [f"spin_us={point.spin_us}"] if point.spin_us is not None else []
    said += [f"the cores {point.cores}"] if point.cores else []
    return ", ".join(said)


def _words(point: Point) -> str:
    """Return the words of ``powerlab profile`` for the point; the mode is the one that is set now."""
    load = point.workload
    usual = Workload(model=load.model, batch_size=load.batch_size)
    options = {
        "--threads": (point.threads, None),
        "--batch": (load.batch_size, 1),
        "--workload": (load.kind.value, usual.kind.value),
        "--optimizer": (load.optimizer, usual.optimizer),
        "--engine": (load.engine, usual.engine),
        "--processor": (load.processor.value, usual.processor.value),
        "--precision": (load.precision, usual.precision),
        "--scenario": (load.scenario.value, usual.scenario.value),
        "--latency-bound-ms": (f"{load.latency_bound_ms:g}", "0"),
        "--slices": (load.slices, usual.slices),
        "--preparation": (load.preparation.value, usual.preparation.value),
        "--spin-us": (point.spin_us, None),
        "--cores": (point.cores, ""),
    }
    given = [word for name, (value, unset) in options.items() if value != unset for word in (name, str(value))]
    return shlex.join([load.model, *given])
