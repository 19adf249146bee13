"""``--board``, ``--label`` and ``--group``: select devices of a server."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace

from powerlab.client import Client
from powerlab.domain.device import Capabilities, Device
from powerlab.domain.errors import PowerlabError
from powerlab.domain.selector import Selector, parse_label
from powerlab.protocol.records import DeviceRecord


def add_selector_arguments(parser: argparse._ActionsContainer) -> None:
    """Add ``--board``, ``--label`` and ``--group``, which :func:`selector_from` reads."""
    parser.add_argument("--board", metavar="BOARD", default="", help="only devices of this board (see powerlab boards)")
    parser.add_argument(
        "--label",
        metavar="LABEL",
        action="append",
        help="only devices with this label, KEY=VALUE or KEY; may be repeated",
    )
    parser.add_argument("--group", metavar="NAME", default="", help="only devices of this group")


def selector_from(args: argparse.Namespace) -> Selector:
    """Return the selector that the options give; raises PowerlabError if a label is malformed."""
    return Selector(
        board=args.board,
        labels=tuple(str(parse_label(word)) for word in args.label or ()),
        group=getattr(args, "group", ""),
    )


def several_from(args: argparse.Namespace) -> Selector | None:
    """Return the selector of a multi-device sweep; None for a sweep on one named device.

    Raises:
        PowerlabError: the options contradict each other.
    """
    selector = selector_from(args)
    if args.any and args.each is not None:
        raise PowerlabError("--any creates one sweep and --each one per device; give only one of them.")
    several = args.any or args.each is not None
    if several and (args.device is not None or args.devices is not None):
        raise PowerlabError("--device and --devices name devices, --any and --each select some; give only one of them.")
    if not several and selector != Selector():
        raise PowerlabError("--board, --label and --group select several devices; add --any or --each.")
    return selector if several else None


def found_devices(api: Client, selector: Selector) -> Sequence[DeviceRecord]:
    """Return the selected devices; raises PowerlabError if there are none."""
    found = list(api.devices(selector=selector))
    if not found:
        raise PowerlabError(f"no device matches {selector}; `powerlab devices list` shows boards, labels and groups.")
    return found


def in_common(devices: Sequence[DeviceRecord]) -> tuple[Device, Capabilities]:
    """Return the common denominator of the devices: the fewest cores, and the modes that all of them have."""
    first, *others = devices
    cores = min(one.device.core_count for one in devices)
    names = [{mode.name for mode in one.capabilities.modes} for one in others]
    modes = tuple(mode for mode in first.capabilities.modes if all(mode.name in own for own in names))
    return replace(first.device, core_count=cores), replace(first.capabilities, modes=modes)
