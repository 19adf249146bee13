"""Several devices, chosen by the words of a command line."""

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
    parser.add_argument("--board", metavar="BOARD", default="", help="only of this board, as powerlab boards names it")
    parser.add_argument("--label", metavar="LABEL", action="append", help="only with KEY=VALUE or KEY; may be repeated")
    parser.add_argument("--group", metavar="NAME", default="", help="only of this group")


def selector_from(args: argparse.Namespace) -> Selector:
    """Return the selector that the words of the command line make; raises PowerlabError where a label is none."""
    return Selector(
        board=args.board,
        labels=tuple(str(parse_label(word)) for word in args.label or ()),
        group=getattr(args, "group", ""),
    )


def several_from(args: argparse.Namespace) -> Selector | None:
    """Return which of several devices a sweep is for; None where it is for one.

    Raises:
        PowerlabError: the words contradict each other.
    """
    selector = selector_from(args)
    if args.any and args.each is not None:
        raise PowerlabError("--any is one sweep and --each is several; give one of both.")
    several = args.any or args.each is not None
    if several and args.device is not None:
        raise PowerlabError("--device names one device, --any and --each several; give one of these.")
    if not several and selector != Selector():
        raise PowerlabError("--board, --label and --group choose several devices; add --any, or --each and of what.")
    return selector if several else None


def found_devices(api: Client, selector: Selector) -> Sequence[DeviceRecord]:
    """Return the devices that a selector chooses; raises PowerlabError where there is none."""
    found = list(api.devices(selector=selector))
    if not found:
        raise PowerlabError(f"no device is chosen by {selector}; `powerlab devices list` shows what each has.")
    return found


def in_common(devices: Sequence[DeviceRecord]) -> tuple[Device, Capabilities]:
    """Return a device that can do what all of these can: the fewest cores, and the modes that every one has."""
    first, *others = devices
    cores = min(one.device.core_count for one in devices)
    names = [{mode.name for mode in one.capabilities.modes} for one in others]
    modes = tuple(mode for mode in first.capabilities.modes if all(mode.name in own for own in names))
    return replace(first.device, core_count=cores), replace(first.capabilities, modes=modes)
