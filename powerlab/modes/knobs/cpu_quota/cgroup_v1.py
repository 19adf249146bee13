"""Control groups of version 1: kernels that have only it (JetPack 4), and machines that mount both versions.

Source: kernel, scheduler/sched-bwc: ``cpu.cfs_quota_us`` is a group's processor time in each ``cpu.cfs_period_us``, -1
for as much as there is. The controller is on where it is mounted, and a group may hold processes beside its child
groups.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from powerlab.cgroups import own_group
from powerlab.domain.errors import PowerlabError
from powerlab.modes.io.files import can_write, write_value
from powerlab.modes.knobs.cpu_quota import cgroup_directory
from powerlab.modes.knobs.cpu_quota.cgroup_directory import GROUP, line_of
from powerlab.sysroot import Sysroot

QUOTA, PERIOD = "cpu.cfs_quota_us", "cpu.cfs_period_us"
_UNLIMITED = "-1"
_START_FILES = {QUOTA: _UNLIMITED, PERIOD: "100000"}


def parse_quota(quota: str, period: str) -> str:
    """Return the text of the two files as version 2 writes it: ``150000 100000``, ``max 100000``.

    Raises:
        ValueError: they are no numbers.
    """
    if not re.fullmatch("-1|[0-9]+", quota) or not re.fullmatch("[0-9]+", period):
        raise ValueError(f"{quota!r} in each {period!r} is not a quota")
    return f"{'max' if quota == _UNLIMITED else quota} {period}"


def find(sysroot: Sysroot, mount: str | None) -> Version1 | None:
    """Return the hierarchy below a mount; None where the kernel was built without quotas (CONFIG_CFS_BANDWIDTH)."""
    if mount is None or not sysroot.path(f"{mount}/{QUOTA}").is_file():
        return None
    own = f"{mount}{own_group(sysroot, 'cpu')}".rstrip("/")
    handed_over = not can_write(sysroot, mount) and can_write(sysroot, own)
    return Version1(sysroot, own if handed_over else mount)


@dataclass(frozen=True, slots=True)
class Version1:
    """See :class:`powerlab.modes.knobs.cpu_quota.cgroup.Hierarchy`."""

    sysroot: Sysroot
    parent: str

    @property
    def permit(self) -> str:
        """The directory in which the group is made."""
        return self.parent

    @property
    def remedy(self) -> str:
        """Nothing hands a group of version 1 to a user who is not root."""
        return "run powerlab as root (sudo), or start the privileged helper"

    @property
    def group(self) -> str:
        """The group, there or not."""
        return f"{self.parent}/{GROUP}"

    def is_on(self) -> bool:
        """Yes: the controller is mounted."""
        return True

    def switch(self, *, on: bool) -> None:
        """Do nothing, since it is on.

        Raises:
            PowerlabError: it should be off.
        """
        if not on:
            raise PowerlabError(f"the controller cpu is on as long as {self.parent} is mounted; leave it on.")

    def read(self) -> str | None:
        """Return the group's quota, None where there is no group.

        Raises:
            PowerlabError: the kernel's files hold no numbers.
        """
        if not self.sysroot.path(self.group).is_dir():
            return None
        try:
            return parse_quota(*(line_of(self.sysroot, f"{self.group}/{name}") for name in (QUOTA, PERIOD)))
        except ValueError as error:
            raise PowerlabError(f"the quota of {self.group} cannot be read ({error}); look at its files.") from None

    def limit(self, quota: str) -> None:
        """Make the group and give it a quota; without one meanwhile, since half of a change may be more than it has."""
        share, _, period = quota.partition(" ")
        cgroup_directory.make(self.sysroot, self.group, _START_FILES)
        write_value(self.sysroot, f"{self.group}/{QUOTA}", _UNLIMITED)
        write_value(self.sysroot, f"{self.group}/{PERIOD}", period)
        if share != "max":
            write_value(self.sysroot, f"{self.group}/{QUOTA}", share)

    def remove(self) -> None:
        """Remove the group; what runs in it moves to the group above."""
        cgroup_directory.remove(self.sysroot, self.group, self.parent, _START_FILES)
