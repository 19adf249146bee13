"""Control groups of a device, of the version that can limit processor time there."""

from __future__ import annotations

from typing import Protocol

from powerlab.cgroups import mounts
from powerlab.modes.knobs.cpu_quota import cgroup_v1, cgroup_v2
from powerlab.sysroot import Sysroot


class Hierarchy(Protocol):
    """A place for powerlab's group. A quota is written as in version 2: ``150000 100000`` µs, ``max 100000``."""

    @property
    def group(self) -> str:
        """The group, there or not."""
        ...

    @property
    def permit(self) -> str:
        """The file or directory that a user may write who may make the group."""
        ...

    @property
    def remedy(self) -> str:
        """What a user may do who may not."""
        ...

    def is_on(self) -> bool:
        """Say whether the controller ``cpu`` works below the group's parent."""
        ...

    def switch(self, *, on: bool) -> None:
        """Switch the controller; raises PowerlabError where the kernel refuses."""
        ...

    def read(self) -> str | None:
        """Return the group's quota, None where there is no group; raises PowerlabError where it is unreadable."""
        ...

    def limit(self, quota: str) -> None:
        """Make the group where it is not there, and give it a quota; raises PowerlabError where the kernel refuses."""
        ...

    def remove(self) -> None:
        """Remove the group where it is there, processes moved out first; raises PowerlabError where it stays."""
        ...


def find(sysroot: Sysroot) -> Hierarchy | None:
    """Return where powerlab's group lies: version 2 where that has the controller ``cpu``, else 1, else None."""
    found = mounts(sysroot)
    return cgroup_v2.find(sysroot, found.version_2) or cgroup_v1.find(sysroot, found.version_1)


def why_none(sysroot: Sysroot) -> tuple[str, str]:
    """Return why :func:`find` found nothing, and what to do about it."""
    found = mounts(sysroot)
    if found.version_1 is not None:
        return (
            f"{found.version_1} has no {cgroup_v1.QUOTA}: this kernel cannot limit processor time",
            "boot a kernel that was built with CONFIG_CFS_BANDWIDTH=y",
        )
    if found.version_2 is not None:
        return (
            f"the control groups in {found.version_2} do not have the controller cpu",
            "run outside of the container, or mount the controller: mount -t cgroup -o cpu cgroup DIRECTORY",
        )
    return (
        "no control groups are mounted here",
        "run outside of the container, or mount them: mount -t cgroup2 cgroup2 /sys/fs/cgroup",
    )
