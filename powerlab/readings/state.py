"""What a device is set to and what it is doing: its power mode, what powerlab does to it, and its uptime."""

from __future__ import annotations

import re

from powerlab.domain.errors import PowerlabError
from powerlab.domain.mode import ModeOrigin
from powerlab.modes.registry import KNOBS
from powerlab.modes.settings import Board
from powerlab.sweep.host import Host
from powerlab.sysroot import Sysroot


def current_mode(host: Host) -> str:
    """Return the vendor's mode the device is in; where it has none, the CPU governor, or ``current``."""
    now = set(Board(host.sysroot, KNOBS).read())
    modes = [mode for mode in host.controller.modes() if mode.settings and set(mode.settings) <= now]
    vendors = [mode.name for mode in modes if mode.origin is ModeOrigin.VENDOR]
    governors = [mode.name for mode in modes if mode.name.startswith("governor=")]
    return "+".join(vendors or governors[:1]) or "current"


def job(host: Host) -> str:
    """Return which process of powerlab holds the device in a mode, or held it and was killed; empty for none."""
    try:
        entry, kept = host.controller.unrestored(), host.controller.persistent()
    except PowerlabError as error:
        return str(error)
    if entry is not None:
        return f"process {entry.pid} has set {entry.mode}"
    return f"{kept.mode} is set until `powerlab modes restore`" if kept is not None else ""


def uptime_s(sysroot: Sysroot) -> float | None:
    """Return the time since boot in s; None where the kernel does not say."""
    try:
        matched = re.match(r"[0-9]{1,12}\.[0-9]{1,6}", sysroot.read("/proc/uptime"))
    except OSError:
        return None
    return float(matched[0]) if matched else None
