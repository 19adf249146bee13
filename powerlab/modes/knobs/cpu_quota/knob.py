"""The knob ``cpu_quota``: processor time of the worker, limited by a control group of its own.

It needs no driver and no special hardware, and either version of control groups will do, so any Linux machine has modes
with it. A worker at its quota is stopped until the next period: it runs at full clock for a part of the time, which is
another way to be slow than a low clock. Only the worker is in the group: powerlab itself and its sampler are not.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from powerlab.domain.errors import PowerlabError
from powerlab.domain.mode import ModeOrigin, PowerMode, Setting
from powerlab.modes import probing
from powerlab.modes.base import Form, KnobProbe
from powerlab.modes.io import delegation
from powerlab.modes.io.files import can_write
from powerlab.modes.io.permissions import FilePermission, Permission, SettingPermission
from powerlab.modes.knobs.cpu_quota import cgroup, cgroup_directory
from powerlab.modes.mode_value import number_of
from powerlab.privileged import client
from powerlab.sysroot import Sysroot

_PERIOD_US = 100_000
_LEAST_US = 1_000
"""The kernel takes no shorter quota in a period."""
_FRACTIONS = (0.25, 0.5, 0.75)
_CONTROLLER, _QUOTA = "controller", "cpu.max"
_ABSENT = "no group"
_VALUE = r"(max|[1-9][0-9]{3,9}) [1-9][0-9]{3,6}"
_IN_A_CONTAINER = "; in a container, have /sys/fs/cgroup mounted writable too"


class CpuQuota:
    """Its settings are ``cpu.max`` of powerlab's group, ``no group`` before it is made, and the ``controller``."""

    name = "cpu_quota"
    meaning = "processor time of the measured worker"
    forms: tuple[Form, ...] = (Form(name="cpu-quota=X", meaning="the worker gets the time of X cores, such as 1.5"),)
    permissions: tuple[Permission, ...] = (
        SettingPermission(target=re.escape(_QUOTA), values=rf"{_ABSENT}|{_VALUE}"),
        SettingPermission(target=_CONTROLLER, values="on|off"),
        FilePermission(
            path=rf"/sys/fs/cgroup(/unified|/cpu|/cpu,cpuacct|/cpuacct,cpu)?/{cgroup_directory.GROUP}/cgroup\.procs",
            values=r"[1-9][0-9]{0,9}",
        ),
    )

    def probe(self, sysroot: Sysroot) -> KnobProbe:
        """Say whether this kernel can limit processor time, and whether this user may."""
        found = cgroup.find(sysroot)
        if found is None:
            return probing.absent(self.name, *cgroup.why_none(sysroot))
        detail = f"the worker's group is {found.group}"
        if not can_write(sysroot, found.permit) and not client.may_set(sysroot, self.name):
            return probing.denied(self.name, detail, found.remedy + _IN_A_CONTAINER)
        return probing.available(self.name, detail)

    def modes(self, sysroot: Sysroot) -> Sequence[PowerMode]:
        """Return quotas of a quarter, half and three quarters of the cores."""
        cores = _core_count(sysroot)
        return [self._mode(f"cpu-quota={share * cores:g}", share * cores) for share in _FRACTIONS]

    def parse(self, sysroot: Sysroot, name: str) -> PowerMode | None:
        """Return the mode with that quota, in cores."""
        quota = number_of(name, "cpu-quota", "")
        if quota is None:
            return None
        cores, least = _core_count(sysroot), _LEAST_US / _PERIOD_US
        if not least <= quota <= cores:
            raise PowerlabError(f"{name!r} cannot be set: give {least:g} to {cores} cores.")
        return self._mode(name, quota)

    def _mode(self, name: str, quota: float) -> PowerMode:
        return PowerMode(
            name=name,
            settings=(
                Setting(knob=self.name, target=_CONTROLLER, value="on"),
                Setting(knob=self.name, target=_QUOTA, value=f"{round(quota * _PERIOD_US)} {_PERIOD_US}"),
            ),
            origin=ModeOrigin.INVENTED,
            description=f"the measured worker gets the time of {quota:g} core{'s' * (quota != 1)}",
        )

    def read(self, sysroot: Sysroot) -> Sequence[Setting]:
        """Return the quota of powerlab's group, if it is there, and whether the controller is on."""
        found = cgroup.find(sysroot)
        if found is None:
            return []
        quota, state = found.read(), "on" if found.is_on() else "off"
        # The group goes before the controller does, and comes after it.
        settings = {_QUOTA: _ABSENT, _CONTROLLER: state} if quota is None else {_CONTROLLER: state, _QUOTA: quota}
        return [Setting(knob=self.name, target=target, value=value) for target, value in settings.items()]

    def write(self, sysroot: Sysroot, setting: Setting) -> None:
        """Make, set or remove the group, or switch the controller."""
        found = cgroup.find(sysroot)
        if found is None:
            raise PowerlabError(
                "the control groups are gone, so no quota can be set; look at `grep cgroup /proc/mounts`."
            )
        if not can_write(sysroot, found.permit) and delegation.set_by_helper(sysroot, setting):
            return
        if setting.target == _CONTROLLER and setting.value in {"on", "off"}:
            if found.is_on() != (setting.value == "on"):
                found.switch(on=setting.value == "on")
        elif setting.target == _QUOTA and setting.value == _ABSENT:
            found.remove()
        elif setting.target == _QUOTA and re.fullmatch(_VALUE, setting.value):
            found.limit(setting.value)
        else:
            raise PowerlabError(
                f"cpu_quota has no setting {setting.target} = {setting.value!r}; it has {_QUOTA} = '150000 100000'."
            )

    def survives_reboot(self, setting: Setting) -> bool:  # noqa: ARG002 - the same for every setting
        """No: control groups end with the boot."""
        return False


def join(sysroot: Sysroot, pid: int) -> None:
    """Put a process into powerlab's group, so that its quota holds for it; nothing where there is no such group.

    On a simulated board the group limits the board's own time, not this machine's, so nothing joins it.

    Raises:
        PowerlabError: the kernel refuses.
    """
    found = None if sysroot.simulated else cgroup.find(sysroot)
    if found is not None and sysroot.path(found.group).is_dir():
        cgroup_directory.move(sysroot, pid, found.group)


def _core_count(sysroot: Sysroot) -> int:
    """Return the cores the machine has, online or not."""
    names = (path.rpartition("/")[2].removeprefix("cpu") for path in sysroot.glob("/sys/devices/system/cpu/cpu[0-9]*"))
    return max(1, sum(name.isdecimal() for name in names))
