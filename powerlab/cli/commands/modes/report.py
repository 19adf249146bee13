"""What ``powerlab modes`` prints."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict

from rich.table import Table
from rich.text import Text

from powerlab.cli.output.page import Page
from powerlab.domain.mode import PowerMode, Setting, reboot_command
from powerlab.domain.power import Availability
from powerlab.modes.base import Knob, KnobProbe
from powerlab.modes.controller import ModeController
from powerlab.modes.naming import OWN_MODES, listed_own_modes, own_modes
from powerlab.modes.reboot.return_note import ReturnNote
from powerlab.modes.registry import KNOBS
from powerlab.sysroot import Sysroot


def listing_json(controller: ModeController, return_note: ReturnNote) -> str:
    """Return every mode, every knob with its forms, and what is not put back, for machines."""
    knobs = {knob.name: knob for knob in KNOBS}
    unrestored, persistent = controller.unrestored(), controller.persistent()
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
        "own_problems": controller.own_problems(),
        "unrestored": asdict(unrestored) if unrestored else None,
        "persistent": asdict(persistent) if persistent else None,
        "rebooted": asdict(rebooted) if (rebooted := return_note.pending()) else None,
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


def print_listing(sysroot: Sysroot, controller: ModeController, return_note: ReturnNote) -> None:
    """Print every mode under its knob, the forms each knob understands, and what cannot be turned here."""
    page = Page()
    current, *others = controller.modes()
    probes = {probe.knob: probe for probe in controller.probes()}
    own, problems = listed_own_modes(sysroot, KNOBS)
    named = {mode.name for mode in own}
    page.show(Text(f"{current.name}: {current.description}"))
    for knob in KNOBS:
        if probes[knob.name].availability is Availability.AVAILABLE:
            offered = [mode for mode in others if mode.name not in named and mode.settings[0].knob == knob.name]
            _print_knob(page, knob, probes[knob.name], offered)
    if own:
        texts = own_modes(sysroot)
        _print_group(
            page, f"named in {OWN_MODES}", [(mode.name, f"{texts[mode.name]}: {mode.description}") for mode in own]
        )
    for problem in problems:
        page.show(Text(), Text(problem, style="red"))
    _print_absent(page, [probe for probe in probes.values() if probe.availability is not Availability.AVAILABLE])
    page.show(
        Text(),
        Text("Names joined with + are set together: cores=2+cpu-max=1190400kHz."),
        Text("`powerlab modes show NAME` says what one sets."),
    )
    _print_changes(page, controller)
    if away := return_note.words():
        page.command(Text(away[0].upper() + away[1:]))


def _print_knob(page: Page, knob: Knob, probe: KnobProbe, modes: Sequence[PowerMode]) -> None:
    rows = [
        (mode.name, f"{mode.description}; {_reboot_words(mode)}" if mode.requires_reboot else mode.description)
        for mode in modes
    ]
    rows += [(form.name, form.meaning) for form in knob.forms]
    _print_group(page, f"{knob.name}: {knob.meaning} ({probe.detail})", rows)


def _print_group(page: Page, title: str, rows: Sequence[tuple[str, str]]) -> None:
    table = Table(box=None, show_header=False, padding=(0, 0, 0, 2))
    table.add_column(no_wrap=True)
    table.add_column()
    for name, meaning in rows:
        table.add_row(Text(name), Text(meaning))
    page.heading(title)
    page.show(table)


def _print_absent(page: Page, probes: Sequence[KnobProbe]) -> None:
    if not probes:
        return
    page.heading("cannot be turned here")
    for probe in probes:
        remedy = f". To fix it: {probe.remedy}" if probe.remedy else ""
        page.command(Text(f"  {probe.knob}: {probe.availability.value}; {probe.detail}{remedy}."))


def _print_changes(page: Page, controller: ModeController) -> None:
    unrestored, persistent = controller.unrestored(), controller.persistent()
    if unrestored:
        page.show(
            Text(f"process {unrestored.pid} set {unrestored.mode} and has not restored the previous settings yet.")
        )
    if persistent:
        page.show(Text(f"{persistent.mode} is set until it is restored."))
    if unrestored or persistent:
        page.show(Text("`powerlab modes restore` goes back."))


def _reboot_words(mode: PowerMode) -> str:
    """Say how a user gets into a mode that powerlab does not set."""
    return f"needs a reboot: `{reboot_command(mode)}`, say yes, then sweep the mode `current`"
