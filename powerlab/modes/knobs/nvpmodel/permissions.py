"""Permissions of the knob ``nvpmodel``: run the program, and write the files its modes write.

The files' paths stand in ``/etc/nvpmodel.conf`` and differ from board to board; only these kinds of files are allowed,
whatever that file says.
"""

from __future__ import annotations

from powerlab.modes.io.permissions import FilePermission, Permission, ProgramPermission, RebootPermission
from powerlab.modes.knobs.nvpmodel.program import PROGRAM

_NAME = r"(?!\.)[A-Za-z0-9_.:@-]{1,64}"
_DEVICE = rf"/sys/devices(/{_NAME}){{1,5}}"
_GPU = r"(gpu\.0|[0-9a-f]{4,16}\.(gpu|gm20b|gp10b|gv11b|ga10b|gb10b))"
_HZ = r"[0-9]{1,11}"

PERMISSIONS: tuple[Permission, ...] = (
    ProgramPermission(program=PROGRAM, arguments=("-q",)),
    ProgramPermission(program=PROGRAM, arguments=("-m", r"[0-9]{1,3}")),
    RebootPermission(program=PROGRAM, arguments=("-m", r"[0-9]{1,3}")),
    FilePermission(path=r"/sys/devices/system/cpu/cpu[0-9]{1,4}/online", values="[01]"),
    FilePermission(path=rf"{_DEVICE}/[a-z]{{3}}_pg_mask", values=r"[0-9]{1,5}"),
    FilePermission(path=rf"/sys/devices(/platform|/bus@0){{0,2}}/{_GPU}/power/control", values="on|auto"),
    FilePermission(path=rf"{_DEVICE}/devfreq(_dev|/{_NAME})/(min|max)_freq", values=_HZ),
    FilePermission(path=r"/sys/kernel/nvpmodel_(clk|emc)_cap/[a-z0-9_]{1,32}", values=_HZ),
)
