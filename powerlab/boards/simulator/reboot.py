"""Reboots a simulated board: what the kernel forgets is as at the first boot, the power mode is the one kept for it."""

from __future__ import annotations

import subprocess
import uuid

from powerlab.boards.registry import find_board
from powerlab.boards.simulator import layout
from powerlab.boards.simulator.tree import boot_files
from powerlab.sysroot import Sysroot

_FORGOTTEN = "/sys/"
_KEPT = "/sys/fs/cgroup/"
"""Control groups hold processes, which on a simulated board go on living."""


def reboot_requested(sysroot: Sysroot) -> bool:
    """Say whether somebody answered yes when the board's nvpmodel asked for a reboot."""
    return sysroot.path(layout.REBOOT_FILE).exists()


def reboot(sysroot: Sysroot) -> None:
    """Boot the board anew; processes that "run on it" are the caller's to end.

    Raises:
        PowerlabError: the directory is not a simulated board.
        OSError: a file cannot be written.
    """
    marker = layout.read_marker(sysroot)
    board = find_board(marker["board"])
    for path, text in boot_files(board, layout.simulation_of(board.name), marker["jetpack"]):
        if path.startswith(_FORGOTTEN) and not path.startswith(_KEPT):
            layout.put(sysroot, path, text)
    nvpmodel = sysroot.path("/usr/sbin/nvpmodel")
    if nvpmodel.exists():
        subprocess.run([nvpmodel, "--boot"], check=True, stdin=subprocess.DEVNULL)
    layout.put(sysroot, "/proc/sys/kernel/random/boot_id", str(uuid.uuid4()))
    sysroot.path(layout.REBOOT_FILE).unlink(missing_ok=True)
