"""The knob ``cpu_quota``: how much processor time the measured worker gets (kernel, admin-guide/cgroup-v2, cpu.max).

It needs no driver and no special hardware, so any Linux machine has modes with it. A worker at its quota is stopped
until the next period: it runs at full clock for a part of the time, which is another way to be slow than a low clock.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from powerlab.domain.errors import PowerlabError
from powerlab.domain.mode import ModeOrigin, PowerMode, Setting
from powerlab.modes import cgroup, delegating, probing
from powerlab.modes.asked import number_of
from powerlab.modes.base import Form, KnobProbe
from powerlab.modes.files import can_write, read_value, write_value
from powerlab.modes.grants import FileGrant, Grant, SettingGrant
from powerlab.privileged import client
from powerlab.sysroot import Sysroot

_PERIOD_US = 100_000
_LEAST_US = 1_000
"""The kernel takes no shorter quota in a period."""
_FRACTIONS = (0.25, 0.5, 0.75)
_CONTROLLER, _QUOTA = "controller", "cpu.max"
_ABSENT = "no group"
_VALUE = r"(max|[1-9][0-9]{3,9}) [1-9][0-9]{3,6}"
_REMEDY = (
    "run powerlab as root (sudo), start the privileged helper, or have systemd hand a group over:"
    " systemd-run --user --scope -p Delegate=yes powerlab ..."
)


class CpuQuota:
    """Its settings are ``cpu.max`` of powerlab's own group, ``no group`` before it is made, and the ``controller``."""

    name = "cpu_quota"
    meaning = "processor time of the measured worker"
    forms: tuple[Form, ...] = (Form(name="cpu-quota=X", meaning="the worker gets the time of X cores, such as 1.5"),)
    grants: tuple[Grant, ...] = (
        SettingGrant(target=re.escape(_QUOTA), values=rf"{_ABSENT}|{_VALUE}"),
        SettingGrant(target=_CONTROLLER, values="on|off"),
        FileGrant(
            path=rf"/sys/fs/cgroup(/[A-Za-z0-9_-]{{1,32}}){{0,3}}/{cgroup.GROUP}/cgroup\.procs",
            values=r"[1-9][0-9]{0,9}",
        ),
    )

    def probe(self, sysroot: Sysroot) -> KnobProbe:
        """Say whether this kernel can limit processor time, and whether this user may."""
        parent = cgroup.parent_of(sysroot)
        if parent is None:
            return probing.absent(
                self.name,
                "no control groups of version 2 with the controller cpu here (containers mostly have none)",
                "boot with systemd.unified_cgroup_hierarchy=1, and run outside of a container",
            )
        detail = f"the worker's group is {parent}/{cgroup.GROUP}"
        mine = can_write(sysroot, f"{parent}/cgroup.subtree_control")
        if not mine and not client.may_set(sysroot, self.name):
            return probing.denied(self.name, detail, _REMEDY)
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
            description=f"the measured worker gets the time of {quota:g} core{'s' * (quota != 1)}, all else as it is",
        )

    def read(self, sysroot: Sysroot) -> Sequence[Setting]:
        """Return the quota of powerlab's group, if it is there, and whether the controller is on."""
        parent = cgroup.parent_of(sysroot)
        if parent is None:
            return []
        try:
            quota = read_value(sysroot, f"{parent}/{cgroup.GROUP}/{_QUOTA}")
        except OSError:
            quota = _ABSENT
        state = "on" if cgroup.is_on(sysroot, parent) else "off"
        # The group goes before the controller does, and comes after it.
        settings = {_QUOTA: quota, _CONTROLLER: state} if quota == _ABSENT else {_CONTROLLER: state, _QUOTA: quota}
        return [Setting(knob=self.name, target=target, value=value) for target, value in settings.items()]

    def write(self, sysroot: Sysroot, setting: Setting) -> None:
        """Make, set or remove the group, or switch the controller."""
        parent = cgroup.parent_of(sysroot)
        if parent is None:
            raise PowerlabError("the control groups are gone, so no quota can be set; look at `mount -t cgroup2`.")
        group = f"{parent}/{cgroup.GROUP}"
        mine = can_write(sysroot, f"{parent}/cgroup.subtree_control")
        if not mine and delegating.set_by_helper(sysroot, setting):
            return
        if setting.target == _CONTROLLER and setting.value in {"on", "off"}:
            if cgroup.is_on(sysroot, parent) != (setting.value == "on"):
                (cgroup.switch_on if setting.value == "on" else cgroup.switch_off)(sysroot, parent)
        elif setting.target == _QUOTA and setting.value == _ABSENT:
            cgroup.remove(sysroot, group)
        elif setting.target == _QUOTA and re.fullmatch(_VALUE, setting.value):
            cgroup.make(sysroot, group)
            write_value(sysroot, f"{group}/{_QUOTA}", setting.value)
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
    parent = None if sysroot.simulated else cgroup.parent_of(sysroot)
    if parent is not None and sysroot.path(f"{parent}/{cgroup.GROUP}").is_dir():
        write_value(sysroot, f"{parent}/{cgroup.GROUP}/cgroup.procs", str(pid))


def _core_count(sysroot: Sysroot) -> int:
    """Return the cores the machine has, on line or not."""
    names = (path.rpartition("/")[2].removeprefix("cpu") for path in sysroot.glob("/sys/devices/system/cpu/cpu[0-9]*"))
    return max(1, sum(name.isdecimal() for name in names))
