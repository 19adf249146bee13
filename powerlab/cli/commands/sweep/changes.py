"""Carries out those actions of ``powerlab sweep`` that change a sweep, and the look at one beforehand."""

from __future__ import annotations

import argparse
import json
from typing import Any

from powerlab.analysis.wording import counted
from powerlab.cli import EXIT_INCOMPLETE, EXIT_OK
from powerlab.cli.arguments.server import connect
from powerlab.cli.commands.sweep.requests import find_device, find_sweep, request_from
from powerlab.client.labs import Labs
from powerlab.domain.errors import PowerlabError
from powerlab.domain.sweep import SweepPlan
from powerlab.protocol.labs import CampaignRequest
from powerlab.protocol.messages import CloneRequest
from powerlab.protocol.records import SweepPreview, SweepRecord
from powerlab.protocol.wire import encode


def preview(args: argparse.Namespace) -> int:
    """Look at a sweep beforehand; the exit status says whether the device can carry it out."""
    api = connect(args.server)
    request = request_from(args, api)
    if isinstance(request, CampaignRequest):
        return _say_previews(args, request.plan, Labs(api.transport).preview_campaign(request))
    return _say_previews(args, request.plan, api.preview(request))


def _say_previews(args: argparse.Namespace, plan: SweepPlan, found: SweepPreview | tuple[SweepPreview, ...]) -> int:
    seen = found if isinstance(found, tuple) else (found,)
    if args.json:
        print(encode(found).decode())
    else:
        for line in (line for one in seen for line in _in_words(plan, one)):
            print(line)
    return EXIT_INCOMPLETE if any(one.complaints for one in seen) else EXIT_OK


def _in_words(plan: SweepPlan, seen: SweepPreview) -> list[str]:
    kind = ", a simulated board" if seen.simulated else ""
    others = [one.device_name for one in seen.candidates if one.device_id != seen.device_id]
    instead = f" (the slowest) or {', '.join(others)}" if others else ""
    most = "at most " if plan.search_percent else ""
    runs = f"{most}{counted(seen.run_count, 'run')} of {counted(seen.point_count, 'point')}"
    first = f"{runs} on {seen.device_name}{kind}{instead}"
    if seen.expected_s is None or seen.longest_s is None:
        return [f"{first} cannot be made:", *(f"  {sentence}" for sentence in seen.complaints)]
    span = f"about {_duration(seen.expected_s)}, at most {_duration(seen.longest_s)}"
    return [f"{first}, {span}", f"from {seen.basis}"]


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def pause(args: argparse.Namespace) -> int:
    """Stop a sweep after its run in progress."""
    api = connect(args.server)
    return say(args, api.pause(find_sweep(api, args.sweep).id))


def resume(args: argparse.Namespace) -> int:
    """Let a paused sweep go on."""
    api = connect(args.server)
    return say(args, api.resume(find_sweep(api, args.sweep).id))


def cancel(args: argparse.Namespace) -> int:
    """End a sweep for good."""
    api = connect(args.server)
    return say(args, api.cancel(find_sweep(api, args.sweep).id))


def clone(args: argparse.Namespace) -> int:
    """Ask for a sweep once more."""
    api = connect(args.server)
    request = CloneRequest(
        device_id=None if args.device is None else find_device(api, args.device).id,
        changes=dict(_change(word) for word in args.set or ()),
        priority=args.priority,
    )
    return say(args, api.clone(find_sweep(api, args.sweep).id, request))


def _change(word: str) -> tuple[str, Any]:
    """Return the name and value of ``NAME=VALUE``; what is no JSON is taken as text."""
    name, equals, value = word.partition("=")
    if not equals:
        raise PowerlabError(f"--set got {word!r}, but it must be a plan's field and its value: --set threads=[1,2].")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def say(args: argparse.Namespace, record: SweepRecord) -> int:
    """Print where a changed sweep stands."""
    if args.json:
        print(encode(record).decode())
        return EXIT_OK
    runs = f"{record.stored_run_count}/{record.planned_run_count} runs"
    held = "; its device ends the run in progress" if record.held_until and record.state != "running" else ""
    print(f"{record.id} on {record.place} is {record.state.label}, {runs}{held}")
    return EXIT_OK
