"""Which point ``powerlab apply`` means."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from powerlab.analysis.dimensions import in_words
from powerlab.analysis.operating_point.devices import MeasuredSweep, of_devices
from powerlab.analysis.operating_point.question import Question
from powerlab.cli.stored.measured_sweeps import find_measured
from powerlab.cli.stored.open_source import open_source
from powerlab.domain.device import Device
from powerlab.domain.errors import PowerlabError
from powerlab.domain.sweep import Point
from powerlab.protocol.identifiers import Kind
from powerlab.sources.source import SweepChoice


def chosen_point(args: argparse.Namespace, question: Question, here: Device) -> Point:
    """Return the point that is named, or else the best one, if this device measured it.

    Raises:
        PowerlabError: there is none, there are several, or another device measured it.
    """
    if args.point is None and not Path(args.sweep).is_file():
        named = _named_alone(args, here)
        if named is not None:
            return named
    measured = find_measured(args.sweep, args)
    sweeps = [sweep for sweep in measured if _is_here(sweep.device_name, here, simulated=sweep.simulated)]
    if args.other_device:
        sweeps = list(measured)
    if not sweeps:
        raise _elsewhere(args.sweep, sorted({sweep.device_name for sweep in measured}), here)
    return _best(sweeps, question) if args.point is None else _of_sweeps(sweeps, args.point)


def _named_alone(args: argparse.Namespace, here: Device) -> Point | None:
    """Return the point whose identifier the word is; None where it is none."""
    with open_source(args) as source:
        found = source.identifiers(args.sweep)
        if not found or any(one.kind is not Kind.POINT for one in found):
            return None
        if len(found) > 1:
            raise PowerlabError(f"several points begin with {args.sweep!r}; give more characters.")
        names = []
        for record in source.sweeps(SweepChoice()):
            point = next((point for point in record.plan.points() if point.id == found[0].id), None)
            if point is None:
                continue
            if args.other_device or _is_here(record.device_name, here, simulated=record.simulated):
                return point
            names.append(record.device_name)
    raise _elsewhere(args.sweep, sorted(set(names)), here)


def _is_here(name: str, here: Device, *, simulated: bool) -> bool:
    return (name, simulated) == (here.name, here.simulated)


def _elsewhere(word: str, names: Sequence[str], here: Device) -> PowerlabError:
    return PowerlabError(
        f"{word} was measured on {', '.join(names)}, and this is {here.name}, where the same mode may mean something "
        "else; apply it there, or give --other-device."
    )


def _best(sweeps: Sequence[MeasuredSweep], question: Question) -> Point:
    found = [
        answer.best
        for device in of_devices(sweeps, question).items
        for answer in device.answers
        if answer.best is not None
    ]
    if len({rated.point for rated in found}) > 1:
        points = "; ".join(f"{rated.point_id} ({in_words(rated.point)}, {rated.figure.provenance})" for rated in found)
        raise PowerlabError(
            f"there are several kinds of work or of figures, each with a best point: {points}; name one with --point."
        )
    return found[0].point


def _of_sweeps(sweeps: Sequence[MeasuredSweep], word: str) -> Point:
    points = {run.point.id: run.point for sweep in sweeps for run in sweep.runs}
    found = [point for key, point in points.items() if key.startswith(word)]
    if len(found) != 1 or not word:
        raise PowerlabError(
            f"{len(found) or 'no'} points of that sweep begin with {word!r}; it has: {', '.join(sorted(points))}."
        )
    return found[0]
