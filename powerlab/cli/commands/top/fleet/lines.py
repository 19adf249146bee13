"""What the table says of each device, in words. A figure that is not of now is left out."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from powerlab.analysis.dimensions import in_words
from powerlab.analysis.wording import counted
from powerlab.cli.commands.top.fleet.feed import Seen
from powerlab.domain.model_name import short
from powerlab.domain.phase import RunPhase
from powerlab.protocol.fleet import FRESH_S, FleetMember, LastReading, RunningSweep

_PHASES = {RunPhase.IDLE: "idle baseline", RunPhase.BETWEEN: "between runs", RunPhase.COOLING: "cooling down"}
_UNKNOWN = "unknown"


class Order(StrEnum):
    """What lines are sorted by."""

    NAME = "name"
    POWER = "W"
    STATE = "state"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A device, and what it reads now.

    Attributes:
        member: the device.
        state: ``busy``, ``idle``, ``offline``, or unknown where the server has not answered for too long.
        last: its reading, if that is of now.
        read_age_s: how old the last reading is, also an old one; None where there is none of the last minutes.
        now: what time it is for the server, UTC.
    """

    member: FleetMember
    state: str
    last: LastReading | None
    read_age_s: float | None
    now: datetime


def lines(seen: Seen, order: Order = Order.NAME) -> list[Line]:
    """Return a line for each device."""
    now = seen.fleet.now + timedelta(seconds=seen.age_s)
    lost = bool(seen.problem) and seen.age_s > FRESH_S
    found = []
    for member in seen.fleet.devices:
        last = seen.fleet.readings.get(member.id)
        age_s = None if last is None else max(0.0, (now - last.at).total_seconds())
        fresh = last if age_s is not None and age_s <= FRESH_S else None
        state = _UNKNOWN if lost else member.activity.value
        found.append(Line(member=member, state=state, last=fresh, read_age_s=age_s, now=now))
    if order is Order.POWER:
        found.sort(key=_by_power)
    elif order is Order.STATE:
        found.sort(key=lambda line: ("busy", "idle", "offline", _UNKNOWN).index(line.state))
    return found


def _by_power(line: Line) -> float:
    """Return what sorts lines by power, the highest first; devices without a figure come last."""
    return math.inf if line.last is None or line.last.power_w is None else -line.last.power_w


def job_words(line: Line) -> str:
    """Return what a device does, what matters most first, as a table may cut it: ``timed 22/36 resnet50, batch 1``."""
    running = line.member.running
    if running is None:
        return ""
    phase = running.phase
    doing = "agent silent" if running.silent else "" if phase is None else phase_words(phase.phase)
    if phase is not None and phase.point is not None:
        what = in_words(phase.point)
    else:
        what = ", ".join(short(model) for model in running.record.plan.models)
    return " ".join(filter(None, (doing, _progress(running), what)))


def about(line: Line) -> str:
    """Return all there is to say of a device's job and of its last day."""
    member, running = line.member, line.member.running
    said = [f"{member.device.name}: {line.state}"]
    if running is not None:
        said.append(f"sweep {running.record.id[:8]}, {_progress(running)} runs{_left(running.left_s)}")
        if running.phase is not None:
            phase = running.phase
            left_s = None if phase.ends_at is None else (phase.ends_at - line.now).total_seconds()
            said.append(f"{phase_words(phase.phase)}{_left(left_s)}")
            said += [in_words(phase.point)] if phase.point is not None else []
        said += [running.record.detail] if running.record.detail else []
        said += ["its agent is silent"] if running.silent else []
    said.append(f"last contact {age_words((line.now - member.seen_at).total_seconds())} ago")
    bad = [
        f"{counted(number, what)}"
        for number, what in (
            (member.throttled_runs, "throttled run"),
            (member.failed_runs, "failed run"),
            (member.failed_sweeps, "failed sweep"),
        )
        if number
    ]
    return "; ".join(said + ([f"in 24 h {', '.join(bad)}"] if bad else []))


def phase_words(phase: RunPhase) -> str:
    """Return a phase as people say it."""
    return _PHASES.get(phase, phase.value)


def age_words(seconds: float) -> str:
    """Return ``4 s``, ``3 min``, ``2 h`` or ``5 d``."""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{int(seconds // size)} {unit}"
    return f"{max(0.0, seconds):.0f} s"


def _progress(running: RunningSweep) -> str:
    return f"{running.record.stored_run_count}/{running.record.planned_run_count}"


def _left(left_s: float | None) -> str:
    return "" if left_s is None or left_s < 1 else f", about {age_words(left_s)} left"
