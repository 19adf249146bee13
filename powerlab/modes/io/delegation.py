"""Settings that are neither a file nor a program: without permission, the privileged helper sets them."""

from __future__ import annotations

import os

from powerlab.domain.errors import PowerlabError
from powerlab.domain.mode import Setting
from powerlab.modes.undo.lock import held_lock
from powerlab.privileged import client
from powerlab.sysroot import Sysroot


def needs_helper(sysroot: Sysroot) -> bool:
    """Say whether settings of this device need root and this process is not; a simulated board needs nobody."""
    return os.geteuid() != 0 and not sysroot.simulated


def may_set(sysroot: Sysroot, knob: str) -> bool:
    """Say whether settings of a knob can be made, by this process or by the helper."""
    return not needs_helper(sysroot) or client.may_set(sysroot, knob)


def set_by_helper(sysroot: Sysroot, setting: Setting) -> bool:
    """Have the helper make a setting where this process may not; return whether it was asked.

    Raises:
        PowerlabError: the helper or the device refuses.
    """
    if not needs_helper(sysroot) or not client.may_set(sysroot, setting.knob):
        return False
    try:
        client.make_setting(sysroot, setting.knob, setting.target, setting.value, held_lock(sysroot))
    except OSError as error:
        raise PowerlabError(
            f"{setting.knob} {setting.target} does not take {setting.value} ({error.strerror})."
        ) from None
    return True
