"""One device of a fleet: its rails, clocks, temperatures and load, as ``powerlab top`` shows them of this machine."""

from __future__ import annotations

from collections import defaultdict

from rich.console import Group, RenderableType
from rich.text import Text

from powerlab.cli.commands.top.fleet.feed import Seen
from powerlab.cli.commands.top.fleet.lines import Line, about, age_words
from powerlab.cli.commands.top.fleet.table import away
from powerlab.cli.commands.top.layout import layout
from powerlab.protocol.readings import LiveRecord, TotalPower
from powerlab.readings.clocks import Clock
from powerlab.readings.minute import Minute, Recent
from powerlab.readings.reading import RailReading, Reading, Temperature, Total


def device_page(seen: Seen, line: Line, width: int, *, by_name: bool = False) -> RenderableType:
    """Return everything about one device below the line about the keys."""
    if seen.device_id != line.member.id or seen.live is None:
        return Group(*away(seen), Text(about(line)), Text(), Text("Asking for its readings …"))
    if line.last is None or not seen.live.readings:
        return Group(*away(seen), Text(about(line)), Text(), Text(_old(line)))
    reading = reading_of(line, seen.live)
    read = Text(f"read {age_words(line.read_age_s or 0.0)} ago", style="dim")
    return Group(*away(seen), layout(reading, width, by_name=by_name), Text(), read)


def reading_of(line: Line, live: LiveRecord) -> Reading:
    """Return a device's last reading, with the minute before it; ``live`` holds one reading at least."""
    minutes: dict[str, Minute] = defaultdict(Minute)
    recent: dict[str, Recent] = {}
    total = Recent(None)
    for record in live.readings:
        time_ns = round(record.at.timestamp() * 1e9)
        recent = {rail.rail: minutes[rail.rail].add(time_ns, rail.power_w) for rail in record.seen.rails}
        total = minutes[""].add(time_ns, record.seen.total.power_w if record.seen.total is not None else None)
    last = live.readings[-1].seen
    return Reading(
        device=line.member.device.name,
        board=line.member.device.board,
        mode=last.mode,
        job=about(line),
        uptime_s=None,
        rails=tuple(
            RailReading(rail=one.rail, provenance=one.provenance, recent=recent[one.rail], problem=one.problem)
            for one in last.rails
        ),
        total=_total(last.total, total),
        clocks=tuple(Clock(name=one.name, clock_mhz=one.clock_mhz, limit_mhz=one.limit_mhz) for one in last.clocks),
        temperatures=tuple(
            Temperature(name=one.name, celsius=one.celsius, limit_c=one.limit_c) for one in last.temperatures
        ),
        busy=dict(enumerate(last.load)),
        cost_s=0.0,
    )


def _total(said: TotalPower | None, recent: Recent) -> Total | None:
    if said is None:
        return None
    return Total(recent=recent, provenance=said.provenance, scope=said.scope, proposed=False)


def _old(line: Line) -> str:
    if line.read_age_s is None:
        return "Nothing was read in the last five minutes."
    return (
        f"The last reading is {age_words(line.read_age_s)} old and says nothing of now; while power is measured for a "
        "figure, an agent reads and sends nothing."
    )
