"""``powerlab modes``: list power modes, show what one sets, set one, and take it back."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from powerlab.domain.mode import Setting
    from powerlab.modes.controller import ModeController
    from powerlab.modes.reboot.return_note import ReturnNote

DESCRIPTION = """\
List this machine's power modes, show the settings of one, set one, or restore the previous settings.

A sweep sets modes itself and restores the previous settings at the end. A mode set here stays until `powerlab modes
restore`; most settings also end with the next boot.
"""

EPILOG = """\
examples:
  powerlab modes                              list what can be set, and why something cannot
  powerlab modes show cores=2+cpu-max=1190400kHz
                                              show the settings of a combination
  sudo powerlab modes set MODE_15W            set a vendor's mode
  sudo powerlab modes set cores=4+governor=performance
                                              set several knobs at once
  sudo powerlab modes restore                 restore, also after a killed sweep

files:
  /etc/powerlab/modes.toml   names of your own:  [modes]  quiet = "cores=2+cpu-max=1190400kHz"

environment:
  POWERLAB_STATE_DIR   directory of the journal of changes (overridden by --state-dir)
"""

_NAME_HELP = "a name that `powerlab modes` lists, a value such as cores=3, or several joined with +"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    _add_common(parser)
    actions = parser.add_subparsers(title="actions", metavar="ACTION", dest="action")
    show = actions.add_parser("show", help="show the settings of a mode", description="Show the settings of a mode.")
    show.add_argument("name", metavar="NAME", help=_NAME_HELP)
    set_parser = actions.add_parser(
        "set",
        help="set a mode until it is restored",
        description="Set a power mode. It stays until `powerlab modes restore`.",
    )
    set_parser.add_argument("name", metavar="NAME", help=_NAME_HELP)
    restore = actions.add_parser(
        "restore",
        help="restore the previous settings",
        description=(
            "Restore the settings from before a killed process or `powerlab modes set`. A setting that takes a "
            "reboot is only reported."
        ),
    )
    restore.add_argument(
        "--if-killed", action="store_true", help="undo only what a killed process left, not `powerlab modes set`"
    )
    for action in (show, set_parser, restore):
        _add_common(action, default=argparse.SUPPRESS)


def _add_common(parser: argparse.ArgumentParser, default: object = None) -> None:
    parser.add_argument("--json", action="store_true", default=default or False, help="print JSON")
    parser.add_argument(
        "--sysroot", metavar="DIR", type=Path, default=default or Path("/"), help="a simulated board's directory"
    )
    parser.add_argument(
        "--state-dir", metavar="DIR", type=Path, default=default, help="directory of the journal of changes"
    )


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    from powerlab.cli.process.interrupts import orderly_ends

    with orderly_ends():
        return _run(args)


def _run(args: argparse.Namespace) -> int:
    from powerlab.cli.commands.modes import report
    from powerlab.domain.errors import PowerlabError
    from powerlab.modes.controller import ModeController
    from powerlab.modes.reboot.return_note import ReturnNote
    from powerlab.state_dir import state_dir
    from powerlab.sysroot import Sysroot

    if not args.sysroot.is_dir():
        raise PowerlabError(f"--sysroot {args.sysroot} is not a directory; create one with `powerlab boards simulate`.")
    sysroot = Sysroot(args.sysroot.absolute())
    state = args.state_dir or state_dir(sysroot)
    controller, return_note = ModeController(sysroot, state), ReturnNote(sysroot, state)
    if args.action == "show":
        mode = controller.mode(args.name)
        print(report.mode_json(mode)) if args.json else report.print_mode(mode)
    elif args.action == "set":
        mode = controller.set(args.name)
        where = "" if sysroot.base == Path("/") else f" --sysroot {args.sysroot}"
        _report(args, mode.settings, f"{mode.name} is set; `powerlab modes restore{where}` goes back.")
    elif args.action == "restore":
        _restore(args, controller, return_note)
    elif args.json:
        print(report.listing_json(controller, return_note))
    else:
        report.print_listing(sysroot, controller, return_note)
    return 0


def _restore(args: argparse.Namespace, controller: ModeController, return_note: ReturnNote) -> None:
    """Undo what can be undone now, say what that was, and only then what takes a reboot."""
    from powerlab.analysis.wording import counted
    from powerlab.domain.errors import PowerlabError

    pending = bool(controller.unrestored() or (not args.if_killed and controller.persistent()))
    written = controller.recover() if args.if_killed else controller.restore()
    refusal = None
    if not args.if_killed and return_note.pending():
        try:
            written, pending = written + return_note.restore(), True
        except PowerlabError as error:
            refusal = error
    if refusal is None or written:
        done = f"{counted(len(written), 'setting')} put back" if written else "what was set ended with an earlier boot"
        _report(args, written, f"{done}." if pending else "there is nothing to put back.")
    if refusal is not None:
        raise refusal


def _report(args: argparse.Namespace, settings: Iterable[Setting], text: str) -> None:
    from powerlab.cli.commands.modes.report import print_settings, settings_json

    if args.json:
        print(settings_json(settings))
    else:
        print_settings(settings)
        print(text)
