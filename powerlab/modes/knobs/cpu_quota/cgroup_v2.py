"""Control groups of version 2: below the mount, or below a group delegated to this user.

Source: kernel, admin-guide/cgroup-v2. A group whose child groups are to be limited must have no processes of its own;
only the top of the whole hierarchy may. So in a group handed over (``systemd-run --user --scope -p Delegate=yes``), or
at the top of a container, the processes that are there move into a child of their own before the controller is switched
on.
"""

from __future__ import annotations

from dataclasses import dataclass

from powerlab.cgroups import own_group
from powerlab.modes.io.files import can_write, write_value
from powerlab.modes.knobs.cpu_quota import cgroup_directory
from powerlab.modes.knobs.cpu_quota.cgroup_directory import GROUP, line_of
from powerlab.sysroot import Sysroot

_QUOTA = "cpu.max"
_START_FILES = {_QUOTA: "max 100000"}
_HERE, _CHILDREN = "cgroup.controllers", "cgroup.subtree_control"
_NOT_AT_THE_TOP = "cgroup.events"
"""A file that all groups have but the top of the hierarchy; a container's top is none."""
_REST = "powerlab-rest"


def find(sysroot: Sysroot, mount: str | None) -> Version2 | None:
    """Return the hierarchy below a mount; None where it does not have the controller ``cpu``."""
    if mount is None or "cpu" not in line_of(sysroot, f"{mount}/{_HERE}").split():
        return None
    if can_write(sysroot, f"{mount}/{_CHILDREN}"):
        return Version2(sysroot, mount)
    own = f"{mount}{own_group(sysroot, '').removesuffix(f'/{_REST}')}".rstrip("/")
    handed_over = own != mount and can_write(sysroot, f"{own}/{_CHILDREN}")
    usable = handed_over and "cpu" in line_of(sysroot, f"{own}/{_HERE}").split()
    return Version2(sysroot, own if usable else mount)


@dataclass(frozen=True, slots=True)
class Version2:
    """See :class:`powerlab.modes.knobs.cpu_quota.cgroup.Hierarchy`."""

    sysroot: Sysroot
    parent: str

    @property
    def permit(self) -> str:
        """The file that switches controllers."""
        return f"{self.parent}/{_CHILDREN}"

    @property
    def remedy(self) -> str:
        """The ways to more rights; systemd hands whole groups over."""
        return (
            "run powerlab as root (sudo), start the privileged helper, or have systemd hand a group over:"
            " systemd-run --user --scope -p Delegate=yes powerlab ..."
        )

    @property
    def group(self) -> str:
        """The group, there or not."""
        return f"{self.parent}/{GROUP}"

    def is_on(self) -> bool:
        """Say whether groups below the parent can be given a quota."""
        return "cpu" in line_of(self.sysroot, self.permit).split()

    def switch(self, *, on: bool) -> None:
        """Let groups below the parent be given a quota, or not; processes that moved aside stay there.

        Raises:
            PowerlabError: the kernel refuses.
        """
        if on and self._aside != self.parent:
            cgroup_directory.make(self.sysroot, self._aside, {})
            cgroup_directory.move_all(self.sysroot, self.parent, self._aside)
        change = "+cpu" if on else "-cpu"
        if self.sysroot.simulated:  # no kernel is there to keep the list
            others = [word for word in line_of(self.sysroot, self.permit).split() if word != "cpu"]
            change = " ".join([*others, "cpu"] if on else others)
        write_value(self.sysroot, self.permit, change)

    @property
    def _aside(self) -> str:
        """Where processes may be that are not limited."""
        at_the_top = not self.sysroot.path(f"{self.parent}/{_NOT_AT_THE_TOP}").exists()
        return self.parent if at_the_top else f"{self.parent}/{_REST}"

    def read(self) -> str | None:
        """Return the group's quota, None where there is no group."""
        return line_of(self.sysroot, f"{self.group}/{_QUOTA}") or None

    def limit(self, quota: str) -> None:
        """Make the group and give it a quota."""
        cgroup_directory.make(self.sysroot, self.group, _START_FILES)
        write_value(self.sysroot, f"{self.group}/{_QUOTA}", quota)

    def remove(self) -> None:
        """Remove the group; what runs in it moves to where all else is."""
        cgroup_directory.remove(self.sysroot, self.group, self._aside, _START_FILES)
