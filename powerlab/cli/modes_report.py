"""What ``powerlab modes`` prints."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict

from rich.console import Console
from rich.table import Table

from powerlab.domain.mode import PowerMode, Setting
from powerlab.domain.power import Availability
from powerlab.modes.base import Knob, KnobProbe
from powerlab.modes.controller import ModeController
from powerlab.modes.naming import OWN_MODES, own_modes
from powerlab.modes.registry import KNOBS
from powerlab.sysroot import Sysroot


def listing_json(controller: ModeController) -> str:
    """Return every mode, every knob with its forms, and what is not put back, for machines."""
    knobs = {knob.name: knob for knob in KNOBS}
    not_put_back, set_to_stay = controller.not_put_back(), controller.set_to_stay()
    document = {
        "modes": [asdict(mode) for mode in controller.modes()],
        "knobs": [
            asdict(probe)
            | {
                "meaning": knobs[probe.knob].meaning,
                "forms": [asdict(form) for form in knobs[probe.knob].forms],
            }
            for probe in controller.probes()
        ],
        "not_put_back": asdict(not_put_back) if not_put_back else None,
        "set_to_stay": asdict(set_to_stay) if set_to_stay else None,
    }
    return json.dumps(document, indent=2)


def mode_json(mode: PowerMode) -> str:
    """Return one mode for machines."""
    return json.dumps(asdict(mode), indent=2)


def settings_json(settings: Iterable[Setting]) -> str:
    """Return settings for machines."""
    return json.dumps([asdict(setting) for setting in settings], indent=2)


def print_settings(settings: Iterable[Setting]) -> None:
    """Print one line a setting."""
    for setting in settings:
        print(f"  {setting.knob} {setting.target} = {setting.value}")


def print_mode(mode: PowerMode) -> None:
    """Print what a mode means and the settings it stands for."""
    print(f"{mode.name}: {mode.description}")
    print_settings(mode.settings)
    if mode.requires_reboot:
        print(_reboot_words(mode)[0].upper() + _reboot_words(mode)[1:] + ".")


def print_listing(sysroot: Sysroot, controller: ModeController) -> None:
    """Print every mode under its knob, the forms each knob understands, and what cannot be turned here."""
    console = Console(markup=False, emoji=False)  # descriptions come from the board's files
    modes, probes = controller.modes(), {probe.knob: probe for probe in controller.probes()}
    named = own_modes(sysroot)
    current, *others = modes
    console.print(f"{current.name}: {current.description}", highlight=False)
    for knob in KNOBS:
        if probes[knob.name].availability is Availability.AVAILABLE:
            own = [mode for mode in others if mode.name not in named and mode.settings[0].knob == knob.name]
            _print_knob(console, knob, probes[knob.name], own)
    if named:
        rows = [(mode.name, f"{named[mode.name]}: {mode.description}") for mode in others if mode.name in named]
        _print_group(console, f"named in {OWN_MODES}", rows)
    _print_absent(console, [probe for probe in probes.values() if probe.availability is not Availability.AVAILABLE])
    console.print(
        "\nNames joined with + are set together: cores=2+cpu-max=1190400kHz. `powerlab modes show NAME` says what one"
        " sets.",
        highlight=False,
        soft_wrap=True,
    )
    _print_changes(console, controller)


def _print_knob(console: Console, knob: Knob, probe: KnobProbe, modes: Sequence[PowerMode]) -> None:
    rows = [
        (mode.name, f"{mode.description}; {_reboot_words(mode)}" if mode.requires_reboot else mode.description)
        for mode in modes
    ]
    rows += [(form.name, form.meaning) for form in knob.forms]
    _print_group(console, f"{knob.name}: {knob.meaning} ({probe.detail})", rows)


def _print_group(console: Console, title: str, rows: Sequence[tuple[str, str]]) -> None:
    console.print(f"\n{title}", style="bold", highlight=False)
    table = Table(box=None, show_header=False, padding=(0, 0, 0, 2))
    table.add_column(no_wrap=True)
    table.add_column()
    for row in rows:
        table.add_row(*row)
    console.print(table, highlight=False)


def _print_absent(console: Console, probes: Sequence[KnobProbe]) -> None:
    if not probes:
        return
    console.print("\ncannot be turned here", style="bold", highlight=False)
    for probe in probes:
        remedy = f". To mend it: {probe.remedy}" if probe.remedy else ""
        console.print(f"  {probe.knob}: {probe.availability.value}; {probe.detail}{remedy}.", highlight=False)


def _print_changes(console: Console, controller: ModeController) -> None:
    not_put_back, set_to_stay = controller.not_put_back(), controller.set_to_stay()
    if not_put_back:
        console.print(f"process {not_put_back.pid} set {not_put_back.mode} and has not put the old settings back yet.")
    if set_to_stay:
        console.print(f"{set_to_stay.mode} was set to stay.")
    if not_put_back or set_to_stay:
        console.print("`powerlab modes restore` goes back.")


def _reboot_words(mode: PowerMode) -> str:
    """Say how a user gets into a mode that powerlab does not set."""
    number = next((setting.value for setting in mode.settings if setting.target == "mode"), "ID")
    return f"needs a reboot: `sudo nvpmodel -m {number}`, say yes, then sweep the mode `current`"
