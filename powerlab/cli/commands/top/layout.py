"""A reading laid out as text. Nothing here reads anything, so the same reading always looks the same."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from powerlab.readings.minute import Recent
from powerlab.readings.reading import RailReading, Reading, Temperature

_BARS = "▁▂▃▄▅▆▇█"
_SPARK_WIDTH = 16
_WIDE = 100
_NO_FIGURE = "–"
_HOT_SHARE = 0.9
_LOAD_WIDTH = 10


def layout(reading: Reading, width: int, *, by_name: bool = False) -> RenderableType:
    """Return everything, one part below the other, for a terminal of so many columns."""
    return Group(
        _header(reading),
        Text(),
        _power(reading, width, by_name=by_name),
        *_about_power(reading),
        Text(),
        _clocks(reading),
        Text(),
        _temperatures(reading, width),
        _load(reading, width),
    )


def sparkline(values: Sequence[float], width: int = _SPARK_WIDTH) -> str:
    """Return the last values as bars between 0 and the highest of them; empty without values.

    More values than columns are gathered, each column the highest of its own, so that no peak is lost.
    """
    if not values:
        return ""
    columns = min(width, len(values))
    edges = [index * len(values) // columns for index in range(columns + 1)]
    tops = [max(values[low:high]) for low, high in pairwise(edges)]
    peak = max(tops)
    if peak <= 0:
        return _BARS[0] * columns
    return "".join(_BARS[min(len(_BARS) - 1, int(max(0.0, top) / peak * len(_BARS)))] for top in tops)


def _header(reading: Reading) -> Text:
    up = f"up {_duration(reading.uptime_s)}" if reading.uptime_s is not None else "uptime unknown"
    header = Text.assemble((reading.device, "bold"), f"  {reading.board}  mode {reading.mode}  {up}")
    if reading.job:
        header.append(f"\n{reading.job}", style="yellow")
    return header


def _duration(seconds: float) -> str:
    minutes = int(seconds // 60)
    days, hours = minutes // 1440, minutes // 60 % 24
    return f"{days} d {hours}:{minutes % 60:02}" if days else f"{hours}:{minutes % 60:02}"


def _grid(*headings: str, left: Sequence[int] = (0,)) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for index, heading in enumerate(headings):
        table.add_column(heading, justify="left" if index in left else "right", no_wrap=index > 0, overflow="fold")
    return table


def _power(reading: Reading, width: int, *, by_name: bool) -> RenderableType:
    if not reading.rails:
        return Text("No rail can be read for power here; `powerlab doctor` says why.", style="yellow")
    table = _grid("rail", "W", "mean W", "peak W", "last minute", "figures are", left=(0, 4, 5))
    spark_width = 2 * _SPARK_WIDTH if width >= _WIDE else _SPARK_WIDTH
    key = _by_name if by_name else _by_watts
    for rail in sorted(reading.rails, key=key):
        table.add_row(Text(rail.rail), *_figures(rail.recent, spark_width), Text(str(rail.provenance)))
    if reading.total is not None:
        origin = Text(str(reading.total.provenance), style="bold")
        table.add_row(Text("total", style="bold"), *_figures(reading.total.recent, spark_width), origin)
    return table


def _by_name(rail: RailReading) -> tuple[bool, str]:
    return False, rail.rail


def _by_watts(rail: RailReading) -> tuple[float, str]:
    watts = rail.recent.power_w
    return (float("inf") if watts is None else -watts), rail.rail


def _figures(recent: Recent, spark_width: int) -> tuple[Text, ...]:
    now = Text("unread", style="yellow") if recent.power_w is None else Text(_watts(recent.power_w), style="bold")
    spark = Text(sparkline(recent.history_w, spark_width), style="green")
    return now, Text(_watts(recent.mean_w)), Text(_watts(recent.peak_w)), spark


def _watts(power_w: float | None) -> str:
    return _NO_FIGURE if power_w is None else f"{power_w:.2f}"


def _about_power(reading: Reading) -> list[Text]:
    """Say what the total covers, and why rails are unread."""
    said = []
    if reading.total is None:
        said.append(Text("There is no total: what can be read here does not add up to the power of the device."))
    else:
        proposed = " (proposed by powerlab)" if reading.total.proposed else ""
        said.append(Text(f"The total covers {reading.total.scope}{proposed}.", style="dim"))
    problems: dict[str, list[str]] = {}
    for rail in reading.rails:
        if rail.problem:
            problems.setdefault(rail.problem, []).append(rail.rail)
    said += [Text(f"{', '.join(rails)}: {problem}", style="yellow") for problem, rails in problems.items()]
    return said


def _clocks(reading: Reading) -> RenderableType:
    if not reading.clocks:
        return Text("No clock can be read here; in a virtual machine they belong to its host.", style="dim")
    table = _grid("clock", "MHz", "up to MHz", "governor", left=(0, 3))
    for clock in reading.clocks:
        limit = _NO_FIGURE if clock.limit_mhz is None else f"{clock.limit_mhz:.0f}"
        table.add_row(clock.name, f"{clock.clock_mhz:.0f}", limit, clock.governor or _NO_FIGURE)
    return table


def _temperatures(reading: Reading, width: int) -> RenderableType:
    if not reading.temperatures:
        return Text("No temperature can be read here.", style="dim")
    cells = [_temperature(one) for one in reading.temperatures]
    return _columns("°C  ", cells, width)


def _temperature(one: Temperature) -> Text:
    hot = one.limit_c is not None and one.celsius >= _HOT_SHARE * one.limit_c
    limit = "" if one.limit_c is None else f" of {one.limit_c:.0f}"
    return Text.assemble(f"{one.name} ", (f"{one.celsius:.1f}", "bold red" if hot else "bold"), (limit, "dim"))


def _load(reading: Reading, width: int) -> RenderableType:
    if not reading.busy:
        return Text("The kernel does not say yet which cores are busy.", style="dim")
    return _columns("load", [_core(number, share) for number, share in sorted(reading.busy.items())], width)


def _core(number: int, share: float) -> Text:
    filled = round(min(1.0, max(0.0, share)) * _LOAD_WIDTH)
    bar = "█" * filled + "·" * (_LOAD_WIDTH - filled)
    return Text.assemble(f"{number:>3} ", (bar, "cyan"), f" {share:>4.0%}")


def _columns(title: str, cells: Sequence[Text], width: int) -> Table:
    """Return cells beside each other, as many as there is room for."""
    cell_width = max(cell.cell_len for cell in cells) + 2
    across = max(1, (width - len(title) - 2) // cell_width)
    table = Table.grid(padding=(0, 2, 0, 0))
    for start in range(0, len(cells), across):
        table.add_row(Text(title if start == 0 else "", style="dim"), *cells[start : start + across])
    return table
