"""Makes one setting: with the knob's own code, in this process or in the privileged helper's."""

from __future__ import annotations

import os

from powerlab.domain.errors import PowerlabError
from powerlab.domain.mode import Setting
from powerlab.modes.base import Knob
from powerlab.modes.grants import SettingGrant
from powerlab.modes.lock import held_lock
from powerlab.privileged import client
from powerlab.sysroot import Sysroot


def write_setting(sysroot: Sysroot, knob: Knob, setting: Setting) -> None:
    """Make a setting.

    Files and programs find the helper by themselves. What is neither, the knob states as :class:`SettingGrant`: then
    the helper, where it is there, makes the whole setting for a process that is no root.

    Raises:
        PowerlabError: the device refuses, or the helper does.
    """
    if not _is_for_helper(sysroot, knob, setting):
        knob.write(sysroot, setting)
        return
    try:
        client.make_setting(sysroot, knob.name, setting.target, setting.value, held_lock(sysroot))
    except OSError as error:
        raise PowerlabError(
            f"{setting.knob} {setting.target} does not take {setting.value!r} ({error.strerror})."
        ) from None


def _is_for_helper(sysroot: Sysroot, knob: Knob, setting: Setting) -> bool:
    stated = any(
        isinstance(grant, SettingGrant) and grant.covers(setting.target, setting.value) for grant in knob.grants
    )
    return stated and os.geteuid() != 0 and client.may_set(sysroot, knob.name)
