"""Where powerlab's own control group lies: below the cgroup v2 mount, or below a group that was handed to this user.

Source: kernel, admin-guide/cgroup-v2. A group whose processes are to be limited must have no processes beside its child
groups; only the mount itself may. So in a group handed over (``systemd-run --user --scope -p Delegate=yes``) the
processes that are there move into a child of their own before the controller is switched on.
"""

from __future__ import annotations

import os

from powerlab.domain.errors import PowerlabError
from powerlab.modes.files import can_write, read_value, write_value
from powerlab.sysroot import Sysroot

GROUP = "powerlab"
_REST = "powerlab-rest"
_USUAL_MOUNT = "/sys/fs/cgroup"


def parent_of(sysroot: Sysroot) -> str | None:
    """Return the group below which powerlab's lies; None where there is no cgroup v2 with the controller ``cpu``."""
    mount = _mount(sysroot)
    if mount is None or "cpu" not in _words(sysroot, f"{mount}/cgroup.controllers"):
        return None
    if can_write(sysroot, f"{mount}/cgroup.subtree_control"):
        return mount
    own = _own_group(sysroot, mount)
    handed_over = own != mount and can_write(sysroot, f"{own}/cgroup.subtree_control")
    return own if handed_over and "cpu" in _words(sysroot, f"{own}/cgroup.controllers") else mount


def _mount(sysroot: Sysroot) -> str | None:
    try:
        lines = [line.split() for line in sysroot.read("/proc/self/mounts").splitlines()]
    except OSError:
        return _USUAL_MOUNT if sysroot.path(f"{_USUAL_MOUNT}/cgroup.controllers").is_file() else None
    return next((words[1] for words in lines if len(words) > 2 and words[2] == "cgroup2"), None)


def _own_group(sysroot: Sysroot, mount: str) -> str:
    """Return this process's group, ``0::/path`` in ``/proc/self/cgroup``, without what :func:`switch_on` added."""
    try:
        lines = sysroot.read("/proc/self/cgroup").splitlines()
    except OSError:
        return mount
    own = next((line.removeprefix("0::") for line in lines if line.startswith("0::")), "/")
    return f"{mount}{own.removesuffix(f'/{_REST}')}".rstrip("/")


def _words(sysroot: Sysroot, path: str) -> list[str]:
    try:
        return read_value(sysroot, path).split()
    except OSError:
        return []


def is_on(sysroot: Sysroot, parent: str) -> bool:
    """Say whether groups below the parent can be given a quota."""
    return "cpu" in _words(sysroot, f"{parent}/cgroup.subtree_control")


def switch_on(sysroot: Sysroot, parent: str) -> None:
    """Let groups below the parent be given a quota.

    Raises:
        PowerlabError: the kernel refuses.
    """
    if not sysroot.simulated and parent != _mount(sysroot):
        make(sysroot, f"{parent}/{_REST}")
        for pid in sysroot.read(f"{parent}/cgroup.procs").split():
            write_value(sysroot, f"{parent}/{_REST}/cgroup.procs", pid)
    _control(sysroot, parent, "+cpu")


def switch_off(sysroot: Sysroot, parent: str) -> None:
    """Undo :func:`switch_on`; processes that moved aside stay there, which changes nothing for them.

    Raises:
        PowerlabError: the kernel refuses.
    """
    _control(sysroot, parent, "-cpu")


def _control(sysroot: Sysroot, parent: str, change: str) -> None:
    path = f"{parent}/cgroup.subtree_control"
    if sysroot.simulated:  # no kernel is there to keep the list
        words = [word for word in _words(sysroot, path) if word != change[1:]]
        change = " ".join([*words, change[1:]] if change.startswith("+") else words)
    write_value(sysroot, path, change)


def make(sysroot: Sysroot, group: str) -> None:
    """Make a group; in a simulated tree, where no kernel fills it, with the one file a quota needs.

    Raises:
        PowerlabError: the kernel refuses.
    """
    path = sysroot.path(group)
    try:
        path.mkdir(exist_ok=True)
        if sysroot.simulated and not (path / "cpu.max").exists():
            (path / "cpu.max").write_text("max 100000\n", encoding="utf-8")
    except OSError as error:
        raise PowerlabError(f"the control group {group} cannot be made ({error.strerror}); run as root.") from None


def remove(sysroot: Sysroot, group: str) -> None:
    """Remove a group.

    Raises:
        PowerlabError: processes still run in it.
    """
    path = sysroot.path(group)
    try:
        if sysroot.simulated:
            (path / "cpu.max").unlink(missing_ok=True)
        os.rmdir(path)
    except FileNotFoundError:
        return
    except OSError as error:
        raise PowerlabError(
            f"the control group {group} cannot be removed ({error.strerror}); end what runs in it and try again."
        ) from None
