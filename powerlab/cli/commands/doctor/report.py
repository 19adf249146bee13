"""What ``powerlab doctor`` found, laid out for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.text import Text

from powerlab.cli.commands.doctor.update_periods import show_watched
from powerlab.cli.output.page import Page, by_state, counted, figures, pairs, scaled, some, states

_MANY_RAILS = 12
_MANY_MODES = 24
_MORE_MODES = " and {} more; --all lists all"
_NAMES = ("source", "knob", "watch")
_IN_SHORT = {
    "measured": "Power is measured here",
    "simulated": "This is a simulated board: its power, like every figure that follows from it, is simulated",
    "estimated": "Power is only estimated here, because no sensor can be read",
}
_CARDS_MEASURED = (
    "The host's power is {} here; that of its graphics cards is measured, and is the power of runs on them"
)


def print_report(found: Mapping[str, Any], console: Console | None = None, *, everything: bool = False) -> None:
    """Lay the document out for people.

    Args:
        found: the document.
        console: where to print; standard output unless given.
        everything: say of each thing that is not here why it is not, and list every rail and mode.
    """
    page = Page(console)
    _device(page, found)
    _graphics(page, found["graphics_processors"])
    _sources(page, found, everything)
    if found["watched_s"] is not None:
        show_watched(page, found, None if everything else _MANY_RAILS)
    _total(page, found)
    _knobs(page, found, everything)
    _watches(page, found["watches"], everything)
    _remedies(page, found)


def _device(page: Page, found: Mapping[str, Any]) -> None:
    device = found["device"]
    page.show(Text.assemble((device["name"], "bold"), f"  {device['board']}"))
    cores = counted(device["core_count"], "core")
    lines = {
        "processor": f"{device['cpu_model']}, {cores} for a sweep",
        "memory": f"{device['memory_bytes'] / 2**30:.1f} GiB" if device["memory_bytes"] else "unknown",
        "kernel": device["kernel"],
        "engine": f"{found['engine']['tier']} kernels on {device['architecture']}",
        "engine on a gpu": _gpus(found["gpus"]),
    }
    page.show(pairs(lines), Text())
    page.say(_in_short(found))


def _gpus(gpus: Mapping[str, Any]) -> str:
    """Name the GPUs that Vulkan knows, in the order of their numbers, or say why there are none."""
    if not gpus["found"]:
        return str(gpus["problem"])
    return "\n".join(
        f"{one['name']}, {one['driver']}"
        + ": the processor stands in for a GPU" * (one["kind"] == "cpu")
        + f"\n  {_offers(one)}"
        for one in gpus["found"]
    )


def _offers(gpu: Mapping[str, Any]) -> str:
    """Say what the engine makes use of there."""
    of_matrices = [f"{precision} ({', '.join(sizes)})" for precision, sizes in gpu["matrices"].items() if sizes]
    return ", ".join(
        (
            "fp32, fp16, int8" if gpu["stores_16_bits"] else "fp32, int8",
            f"cooperative matrices in {' and '.join(of_matrices)}" if of_matrices else "no cooperative matrices",
            *(["integer dot product"] if gpu["dot_product"] else []),
            counted(gpu["queues"], "queue"),
        )
    )


def _graphics(page: Page, gpus: list[Mapping[str, Any]]) -> None:
    """Say what each graphics processor is and what it tells of its power; nothing where there is none."""
    if not gpus:
        return
    page.heading("Graphics processors")
    for gpu in gpus:
        memory = f"{gpu['memory_bytes'] / 2**30:.1f} GiB" if gpu["memory_bytes"] else ""
        page.say(", ".join(filter(None, (gpu["name"], gpu["driver"] or "no driver", memory))))
        page.say(
            "  " + ("\n  ".join(gpu["power"]) or "no power sensor that can be read: a run there has no watts of it")
        )


def _in_short(found: Mapping[str, Any]) -> str:
    """Say in two or three sentences what a newcomer wants to know first."""
    origin = found["total_provenance"]
    power = _IN_SHORT.get(origin, "Nothing here can be read for power: runs will carry no watts, and never 0 W")
    if origin in (None, "estimated") and found["total_on_cards"]:
        power = _CARDS_MEASURED.format("only estimated" if origin else "not known")
    settable = [mode for mode in found["modes"] if mode["origin"] != "current" and not mode["requires_reboot"]]
    modes = f"{counted(len(settable), 'power mode')} can be set" if settable else "No power mode can be set"
    wrong = [one for one in _all_probes(found) if one["availability"] in ("denied", "broken")]
    count = len(wrong) + len(found["mode_problems"])
    end = (
        f" {counted(count, 'thing')} could work and {'does' if count == 1 else 'do'} not: see the end." if count else ""
    )
    return f"{power}. {modes}.{end}"


def _all_probes(found: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [*found["sources"], *found["knobs"], *found["watches"]]


def _listed(page: Page, entries: list[Mapping[str, Any]], name: str, everything: bool) -> None:
    """List what was looked for; what is not here in one line, unless nothing is or the reasons are asked for."""
    absent = [entry for entry in entries if entry["availability"] == "absent"]
    if everything or len(absent) == len(entries):
        page.show(states(entries, name))
        return
    page.show(states([entry for entry in entries if entry not in absent], name))
    if absent:
        names = ", ".join(entry[name] for entry in absent)
        page.say(f"Not available: {names}; --all says why.")


def _sources(page: Page, found: Mapping[str, Any], everything: bool) -> None:
    page.heading("What can be measured")
    sources = found["sources"]
    # Who has no sensor wants to know why.
    _listed(page, sources, "source", everything or found["total_provenance"] in (None, "estimated"))
    rails = [rail for source in by_state(sources) for rail in source["rails"]]
    if not rails:
        return
    most = len(rails) if everything else _MANY_RAILS
    rows = [_rail(rail) for rail in rails[:most]]
    page.show(Text(), figures(("rail", "gives", "step", "offset", "error", "new value", "figures are"), rows))
    if len(rails) > most:
        page.say(f"and {len(rails) - most} more: `powerlab doctor --all` lists all.")


def _rail(rail: Mapping[str, Any]) -> tuple[str, ...]:
    unit = "J" if rail["quantity"] == "energy" else "W"
    return (
        f"{rail['source']}:{rail['name']}",
        rail["quantity"],
        scaled(rail["resolution"], unit) if rail["resolution"] else "unknown",
        f"±{scaled(rail['offset'], unit)}" if rail["offset"] else "–",
        f"±{rail['relative_error']:.1%}",
        f"every {scaled(rail['update_period_s'], 's')}" if rail["update_period_s"] else "at every read",
        rail["provenance"],
    )


def _total(page: Page, found: Mapping[str, Any]) -> None:
    page.heading("Board power")
    total = found["total"]
    if total is None:
        page.say("None: nothing here can be read, so runs will carry no watts (and never 0 W).")
        if on_cards := _on_cards(found):
            page.show(pairs(on_cards))
        return
    lines = {
        "total": some(total["rails"], _MANY_RAILS, " + ", " + {} more"),
        "covers": total["scope"],
        "formula": _formula(total),
        "figures are": found["total_provenance"],
        **_on_cards(found),
    }
    if found["cross_check"]:
        lines["but"] = "\n".join(found["cross_check"])
    page.show(pairs(lines))


def _on_cards(found: Mapping[str, Any]) -> dict[str, str]:
    """Name the total of runs that compute on graphics cards alone, where it is another one."""
    total = found["total_on_cards"]
    if not total:
        return {}
    return {"on cards": f"{some(total['rails'], _MANY_RAILS, ' + ', ' + {} more')}: {total['scope']}"}


def _formula(total: Mapping[str, Any]) -> str:
    """Say whose formula it is."""
    if total["proposed"]:
        return "proposed by powerlab, which has no description of this board"
    if all(rail.startswith("meter:") for rail in total["rails"]):
        return "the external meter alone, for it sees more than any sensor inside"
    return "the board's own"


def _knobs(page: Page, found: Mapping[str, Any], everything: bool) -> None:
    page.heading("What can be set")
    _listed(page, found["knobs"], "knob", everything)
    names = [mode["name"] + (" (needs a reboot)" if mode["requires_reboot"] else "") for mode in found["modes"]]
    lines = {
        "power modes": some(names, len(names) if everything else _MANY_MODES, ", ", _MORE_MODES),
        "to restore": _journal(found["journal"]),
    }
    page.show(Text(), pairs(lines))


def _journal(journal: Mapping[str, Any]) -> str:
    if journal["problem"]:
        return str(journal["problem"])
    told = []
    if entry := journal["unrestored"]:
        told.append(f"process {entry['pid']} set {entry['mode']} and has not restored the previous settings yet")
    if entry := journal["persistent"]:
        told.append(f"{entry['mode']} is set until it is restored")
    if journal["away"]:
        told.append(str(journal["away"]).rstrip("."))
    return "; ".join(told) or "nothing"


def _watches(page: Page, watches: list[Mapping[str, Any]], everything: bool) -> None:
    page.heading("Throttling detection")
    _listed(page, watches, "watch", everything)


def _remedies(page: Page, found: Mapping[str, Any]) -> None:
    """Say what to do, below everything else and unwrapped, so that commands can be copied."""
    told: dict[str, list[str]] = {}
    for entry in by_state(_all_probes(found)):
        if entry["remedy"]:
            name = next(entry[key] for key in _NAMES if key in entry)
            told.setdefault(entry["remedy"], []).append(name)
    for problem in found["mode_problems"]:
        told.setdefault(problem.rstrip("."), []).append("power modes")
    journal = found["journal"]
    if journal["unrestored"] or journal["persistent"]:
        told["`powerlab modes restore` puts the old settings back"] = ["modes"]
    if not told:
        return
    page.heading("What you can do")
    for remedy, names in told.items():
        page.command(Text.assemble((f"  {', '.join(names)}: ", "bold"), remedy))
