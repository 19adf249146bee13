"""What ``powerlab doctor`` says: one document, which is printed as JSON or laid out for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from powerlab.engine.tiers import choose_tier

if TYPE_CHECKING:
    from powerlab.sweep.host import Host

_STYLES = {"available": "green", "absent": "dim", "denied": "yellow", "broken": "red"}
_MARKS = {"available": "✓", "absent": "–", "denied": "!", "broken": "✗"}
_MANY_RAILS = 12


def document(host: Host) -> dict[str, Any]:
    """Return everything the doctor found as values that JSON can hold."""
    capabilities = host.capabilities()
    provenances = {rail.key: rail.provenance for source in capabilities.sources for rail in source.rails}
    total = capabilities.total
    found: dict[str, Any] = msgspec.to_builtins(
        {
            "device": host.device(),
            "engine": {"tier": choose_tier().name},
            "sources": capabilities.sources,
            "total": total,
            "total_provenance": provenances[total.rails[0]] if total else None,
            "knobs": host.controller.probes(),
            "modes": capabilities.modes,
        }
    )
    return found


def print_report(found: Mapping[str, Any], console: Console | None = None) -> None:
    """Lay the document out for people."""
    console = console or Console(highlight=False)
    _print_device(console, found)
    _print_sources(console, found["sources"])
    _print_total(console, found)
    _print_knobs(console, found)
    _print_remedies(console, found)


def _heading(console: Console, title: str) -> None:
    console.print()
    console.print(Text(title, style="bold"))


def _print_device(console: Console, found: Mapping[str, Any]) -> None:
    device = found["device"]
    simulated = "; simulated: so is every figure" if device["simulated"] else ""
    console.print(Text.assemble((device["name"], "bold"), f"  {device['board']}{simulated}"), soft_wrap=True)
    memory = f"{device['memory_bytes'] / 2**30:.1f} GiB" if device["memory_bytes"] else "unknown"
    cores = device["core_count"]
    lines = {
        "processor": f"{device['cpu_model']}, {cores} core{'s' * (cores != 1)} for a sweep",
        "memory": memory,
        "kernel": device["kernel"],
        "engine": f"{found['engine']['tier']} kernels on {device['architecture']}",
    }
    console.print(_pairs(lines))


def _pairs(lines: Mapping[str, str]) -> Table:
    table = Table.grid(padding=(0, 2))
    for name, value in lines.items():
        table.add_row(Text(f"  {name}", style="dim"), Text(value))
    return table


def _status_table(entries: list[Mapping[str, Any]], name: str) -> Table:
    table = Table.grid(padding=(0, 2))
    for entry in entries:
        state = entry["availability"]
        status = Text(f"{_MARKS[state]} {state}", style=_STYLES[state])
        table.add_row(Text(f"  {entry[name]}"), status, Text(entry["detail"]))
    return table


def _print_sources(console: Console, sources: list[Mapping[str, Any]]) -> None:
    _heading(console, "What can be measured")
    console.print(_status_table(sources, "source"))
    rails = [rail for source in sources for rail in source["rails"]]
    if not rails:
        return
    console.print()
    table = Table(box=None, pad_edge=True, header_style="dim")
    for title in ("rail", "gives", "step", "error", "new value", "figures are"):
        table.add_column(title)
    for rail in rails[:_MANY_RAILS]:
        unit = "J" if rail["quantity"] == "energy" else "W"
        table.add_row(
            Text(f"{rail['source']}:{rail['name']}"),
            f"{rail['quantity']} ({unit})",
            _scaled(rail["resolution"], unit) if rail["resolution"] else "unknown",
            f"±{rail['relative_error']:.1%}",
            f"every {_scaled(rail['update_period_s'], 's')}" if rail["update_period_s"] else "at every read",
            rail["provenance"],
        )
    console.print(table)
    if len(rails) > _MANY_RAILS:
        console.print(f"  and {len(rails) - _MANY_RAILS} more: `powerlab doctor --json` lists all.")


def _scaled(value: float, unit: str) -> str:
    """Write a small figure with the prefix that suits it: 0.000061 J is 61 µJ."""
    for factor, prefix in ((1.0, ""), (1e-3, "m"), (1e-6, "µ")):
        if value >= factor:
            return f"{value / factor:.3g} {prefix}{unit}"
    return f"{value / 1e-6:.2g} µ{unit}"


def _print_total(console: Console, found: Mapping[str, Any]) -> None:
    _heading(console, "Power of the whole")
    total = found["total"]
    if total is None:
        console.print("  None: nothing here can be read, so runs will carry no watts (and never 0 W).")
        return
    rails = total["rails"]
    shown = " + ".join(rails[:_MANY_RAILS]) + (f" + {len(rails) - _MANY_RAILS} more" * (len(rails) > _MANY_RAILS))
    origin = "proposed by powerlab, which has no description of this board" if total["proposed"] else "the board's own"
    lines = {"total": shown, "covers": total["scope"], "formula": origin, "figures are": found["total_provenance"]}
    console.print(_pairs(lines))


def _print_knobs(console: Console, found: Mapping[str, Any]) -> None:
    _heading(console, "What can be set")
    console.print(_status_table(found["knobs"], "knob"))
    names = [mode["name"] + (" (needs a reboot)" if mode["requires_reboot"] else "") for mode in found["modes"]]
    console.print(_pairs({"power modes": ", ".join(names)}))


def _print_remedies(console: Console, found: Mapping[str, Any]) -> None:
    """Say what to do, below everything else and unwrapped, so that commands can be copied."""
    entries = [(source["source"], source["remedy"]) for source in found["sources"]]
    entries += [(knob["knob"], knob["remedy"]) for knob in found["knobs"]]
    if not any(remedy for _, remedy in entries):
        return
    _heading(console, "What you can do")
    for name, remedy in entries:
        if remedy:
            console.print(Text.assemble((f"  {name}: ", "bold"), remedy), soft_wrap=True)
