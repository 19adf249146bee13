"""The helper's command line: ``powerlab-helper``."""

from __future__ import annotations

import argparse
import logging
import pwd
import sys
from collections.abc import Sequence
from pathlib import Path

from powerlab.domain.errors import PowerlabError
from powerlab.modes.undo.lock import prepare_lock
from powerlab.privileged.client import be_the_helper
from powerlab.privileged.protocol import SOCKET
from powerlab.sysroot import Sysroot
from powerlab_helper.actions import Actions
from powerlab_helper.allowlist import Allowed
from powerlab_helper.listening_socket import listening, only_helper
from powerlab_helper.server import Server

_DESCRIPTION = """\
Do the few things that need root for an agent that is none: set power modes, open sensors.

What may be asked for is a fixed list: the files, values and programs each knob states, and sensors to read. Everything
done is logged on standard error. systemd starts it: see powerlab-helper.service and powerlab-helper.socket.
"""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="powerlab-helper", description=_DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--user", required=True, help="who may ask, besides root: a name or a number")
    parser.add_argument("--socket", type=Path, metavar="PATH", help=f"where to listen (default: {SOCKET})")
    parser.add_argument(
        "--sysroot", type=Path, default=Path("/"), metavar="DIR", help="a simulated board instead of this machine"
    )
    parser.add_argument(
        "--allow-reboot",
        action="store_true",
        help="reboot the device where a power mode that the agent sets asks for it (default: never)",
    )
    parser.add_argument("--verbose", action="store_true", help="log questions too, not only what was done")
    return parser


def run(args: argparse.Namespace) -> int:
    """Serve until told to stop; raises PowerlabError."""
    uid, gid = _user(args.user)
    if not args.sysroot.is_dir():
        raise PowerlabError(f"--sysroot {args.sysroot} is not a directory; create one with `powerlab boards simulate`.")
    sysroot = Sysroot(args.sysroot.absolute())
    path = args.socket or sysroot.path(SOCKET)
    be_the_helper()
    with only_helper(path), listening(path, gid) as listener:
        prepare_lock(sysroot)
        allowed = Allowed(reboots=args.allow_reboot)
        Server(listener, Actions(sysroot, allowed), frozenset({0, uid})).serve()
    return 0


def _user(name: str) -> tuple[int, int]:
    try:
        found = pwd.getpwuid(int(name)) if name.isdecimal() else pwd.getpwnam(name)
    except (KeyError, OverflowError):
        if name.isdecimal() and int(name) < 2**32 - 1:
            return int(name), int(name)
        raise PowerlabError(f"there is no user {name!r}; make one with `useradd --system {name}`.") from None
    return found.pw_uid, found.pw_gid


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``powerlab-helper``."""
    args = _parser().parse_args(argv)
    level = logging.DEBUG if args.verbose else logging.INFO
    logging.basicConfig(level=level, format="%(levelname)s %(message)s", stream=sys.stderr)
    try:
        return run(args)
    except PowerlabError as error:
        sys.stderr.write(f"powerlab-helper: {error}\n")
        return 2


if __name__ == "__main__":
    sys.exit(main())
