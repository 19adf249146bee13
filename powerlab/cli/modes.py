"""``powerlab modes``: list power modes, set one, and take it back."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from powerlab.domain.mode import Setting
    from powerlab.modes.controller import ModeController

_DESCRIPTION = """\
List the power modes this machine can be set to, set one to stay, or go back.

A sweep sets modes by itself and puts the previous settings back at its end. What is set here stays until
`powerlab modes restore`, or for most settings until the next boot.
"""

_EPILOG = """\
examples:
  powerlab modes                         what can be set, and why something cannot
  sudo powerlab modes set MODE_15W       set it to stay
  sudo powerlab modes restore            back to what was before, also after a killed sweep

environment:
  POWERLAB_STATE_DIR   where the journal of changes lies, unless --state-dir says so
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "modes",
        help="list power modes, set one, go back",
        description=_DESCRIPTION,
        epilog=_EPILOG,
    )
    _add_common(parser)
    actions = parser.add_subparsers(title="actions", metavar="ACTION", dest="action")
    set_parser = actions.add_parser("set", help="set a mode to stay", description="Set a power mode to stay.")
    set_parser.add_argument("name", metavar="NAME", help="a name that `powerlab modes` lists")
    restore = actions.add_parser(
        "restore",
        help="go back to what was before",
        description="Undo what a killed process left, and the modes set to stay.",
    )
    for action in (set_parser, restore):
        _add_common(action, default=argparse.SUPPRESS)


def _add_common(parser: argparse.ArgumentParser, default: object = None) -> None:
    parser.add_argument("--json", action="store_true", default=default or False, help="print JSON for machines")
    parser.add_argument(
        "--sysroot", metavar="DIR", type=Path, default=default or Path("/"), help="a simulated board's directory"
    )
    parser.add_argument(
        "--state-dir", metavar="DIR", type=Path, default=default, help="where the journal of changes lies"
    )


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    from powerlab.domain.errors import PowerlabError
    from powerlab.modes.controller import ModeController
    from powerlab.state_dir import state_dir
    from powerlab.sysroot import Sysroot

    if not args.sysroot.is_dir():
        raise PowerlabError(f"{args.sysroot} is no directory; `powerlab boards simulate` writes one.")
    sysroot = Sysroot(args.sysroot.absolute())
    controller = ModeController(sysroot, args.state_dir or state_dir(sysroot))
    if args.action == "set":
        mode = controller.set(args.name)
        _report(args, mode.settings, f"{mode.name} is set; `powerlab modes restore` goes back.")
    elif args.action == "restore":
        pending = controller.not_put_back() or controller.set_to_stay()
        written = controller.restore()
        done = f"{len(written)} settings put back" if written else "what was set ended with an earlier boot"
        _report(args, written, f"{done}." if pending else "there is nothing to put back.")
    else:
        _list(args, controller)
    return 0


def _report(args: argparse.Namespace, settings: Iterable[Setting], text: str) -> None:
    if args.json:
        print(json.dumps([asdict(setting) for setting in settings], indent=2))
        return
    for setting in settings:
        print(f"  {setting.knob} {setting.target} = {setting.value}")
    print(text)


def _list(args: argparse.Namespace, controller: ModeController) -> None:
    modes, probes = controller.modes(), controller.probes()
    not_put_back, set_to_stay = controller.not_put_back(), controller.set_to_stay()
    if args.json:
        document = {
            "modes": [asdict(mode) for mode in modes],
            "knobs": [asdict(probe) for probe in probes],
            "not_put_back": asdict(not_put_back) if not_put_back else None,
            "set_to_stay": asdict(set_to_stay) if set_to_stay else None,
        }
        print(json.dumps(document, indent=2))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("mode", "by", "what it does"):
        table.add_column(heading)
    for mode in modes:
        reboot = " (needs a reboot: not set by powerlab)" if mode.requires_reboot else ""
        table.add_row(mode.name, mode.origin.value, mode.description + reboot)
    console = Console(markup=False, emoji=False)  # descriptions come from the board's files
    console.print(table)
    console.print()
    for probe in probes:
        remedy = f" To mend it: {probe.remedy}." if probe.remedy else ""
        console.print(f"{probe.knob}: {probe.availability.value}; {probe.detail}.{remedy}", highlight=False)
    if not_put_back:
        console.print(f"process {not_put_back.pid} set {not_put_back.mode} and has not put the old settings back yet.")
    if set_to_stay:
        console.print(f"{set_to_stay.mode} was set to stay.")
    if not_put_back or set_to_stay:
        console.print("`powerlab modes restore` goes back.")
