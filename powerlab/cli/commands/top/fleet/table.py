"""The fleet laid out as text: a summary, a line for each device, and all there is to say of the chosen one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from powerlab.analysis.wording import counted
from powerlab.cli.commands.top.fleet.feed import Seen
from powerlab.cli.commands.top.fleet.lines import Line, about, age_words, job_words
from powerlab.protocol.fleet import Activity, LastReading, powers_by_provenance

_WIDE = 100
_NAME_WIDTH, _MODE_WIDTH = 20, 10
_NO_FIGURE = "–"
_STATE_STYLES = {"busy": "green", "offline": "red", "unknown": "yellow"}


def fleet_page(seen: Seen, found: Sequence[Line], width: int, *, chosen: str = "", rows: int | None = None) -> Group:
    """Return everything below the line about the keys.

    Args:
        seen: what the server said last.
        found: a line for each device, in their order.
        width: columns of the terminal.
        chosen: the id of the device that is told in full; empty for none.
        rows: how many devices there is room for; None shows all.
    """
    if not found:
        return Group(*away(seen), Text("No devices yet; `powerlab agent enrol` on a device enrols it."))
    place = next((index for index, line in enumerate(found) if line.member.id == chosen), None)
    first, end = _window(len(found), place or 0, rows)
    parts: list[RenderableType] = [*away(seen), *_summary(found), Text()]
    parts.append(_table(found, found[first:end], width, chosen))
    if end - first < len(found):
        parts.append(Text(f"devices {first + 1} to {end} of {len(found)}", style="dim"))
    if place is not None:
        parts += [Text(), Text(about(found[place]))]
    return Group(*parts)


def away(seen: Seen) -> list[Text]:
    """Say since when there has been no answer; nothing where the server answers."""
    if not seen.problem:
        return []
    since = f"No answer since {seen.at.astimezone():%H:%M:%S} ({age_words(seen.age_s)}), asking again: "
    return [Text(since + seen.problem, style="bold yellow")]


def _window(count: int, place: int, rows: int | None) -> tuple[int, int]:
    """Return which lines to show, so that the chosen one is among them."""
    if rows is None or rows >= count:
        return 0, count
    rows = max(1, rows)
    first = min(max(0, place - rows // 2), count - rows)
    return first, first + rows


def _summary(found: Sequence[Line]) -> list[Text]:
    """Count the states as the home page does, and add up power by provenance."""
    states = Counter(line.state for line in found)
    parts = [f"{len(found) - states['offline']} online"] if not states["unknown"] else []
    parts += [f"{states[one]} {one}" for one in (*(activity.value for activity in Activity), "unknown") if states[one]]
    throttled = sum(line.member.throttled_runs > 0 for line in found)
    parts += [f"{throttled} throttled in 24 h"] if throttled else []
    powers = powers_by_provenance(line.last for line in found)
    watts = [f"{sum(power_w):.2f} W {provenance}" for provenance, power_w in powers.items()]
    power = Text(f"power now: {', '.join(watts) or 'none is known'}")
    return [Text.assemble((counted(len(found), "device"), "bold"), f": {', '.join(parts)}"), power]


def _table(everything: Sequence[Line], found: Sequence[Line], width: int, chosen: str) -> Table:
    wide = width >= _WIDE
    kinds = {line.last.provenance for line in everything if line.last is not None and line.last.power_w is not None}
    common = next(iter(kinds)) if len(kinds) == 1 else None
    table = Table(box=None, pad_edge=False, padding=(0, 2 if wide else 1, 0, 0), header_style="dim", expand=True)
    table.add_column("device", no_wrap=True, overflow="ellipsis", max_width=_NAME_WIDTH)
    table.add_column("state", no_wrap=True)
    table.add_column("job", no_wrap=True, overflow="ellipsis", ratio=1)
    table.add_column(f"W\n{common}" if common else "W", justify="right", no_wrap=True)
    if not common and kinds:
        table.add_column("W is", no_wrap=True)
    table.add_column("°C", justify="right", no_wrap=True)
    table.add_column("MHz", justify="right", no_wrap=True)
    table.add_column("mode", no_wrap=True, overflow="ellipsis", max_width=_MODE_WIDTH)
    table.add_column("throttled\nruns, 24 h" if wide else "thr.\n24 h", justify="right", no_wrap=True)
    table.add_column("read", justify="right", no_wrap=True)
    for line in found:
        marked = line.member.id == chosen
        table.add_row(*_cells(line, mixed=not common and bool(kinds)), style="reverse" if marked else "")
    return table


def _cells(line: Line, *, mixed: bool) -> list[Text]:
    last, member = line.last, line.member
    provenance = last.provenance if last is not None and last.power_w is not None else None
    return [
        Text(member.device.name),
        Text(line.state, style=_STATE_STYLES.get(line.state, "")),
        Text(job_words(line) or _NO_FIGURE),
        _power(last),
        *([Text("" if provenance is None else provenance.value)] if mixed else []),
        Text(_figure(None if last is None else last.hottest_c)),
        Text(_figure(None if last is None else last.clock_mhz)),
        Text(_NO_FIGURE if last is None else last.mode),
        Text(str(member.throttled_runs), style="yellow" if member.throttled_runs else "dim"),
        Text(_NO_FIGURE if line.read_age_s is None else age_words(line.read_age_s), style="" if last else "yellow"),
    ]


def _power(last: LastReading | None) -> Text:
    """Return a power; a device without sensors, and one whose rail cannot be read, say so, and are never 0 W."""
    if last is None:
        return Text(_NO_FIGURE)
    if last.power_w is None:
        return Text("none" if last.provenance is None else "unread", style="yellow")
    return Text(f"{last.power_w:.2f}", style="bold")


def _figure(value: float | None) -> str:
    return _NO_FIGURE if value is None else f"{value:.0f}"
