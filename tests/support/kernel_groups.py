"""A plain tree that does what a kernel's control groups do."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from types import SimpleNamespace

import pytest

from powerlab.modes.knobs.cpu_quota import cgroup_directory, cgroup_v1, cgroup_v2
from powerlab.sysroot import SIMULATION_MARKER, Sysroot

ROOT = "/sys/fs/cgroup"


def as_a_kernel(sysroot: Sysroot, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a new group have files, a process be in one group at a time, and a group with somebody in it stay."""
    sysroot.path(SIMULATION_MARKER).unlink()
    real_make = cgroup_directory.make

    def write(root: Sysroot, path: str, value: str) -> None:
        file = root.path(path)
        if path.endswith("cgroup.procs"):
            for other in root.path(ROOT).rglob("cgroup.procs"):
                other.write_text("".join(pid + "\n" for pid in other.read_text().split() if pid != value))
            file.write_text(file.read_text() + value + "\n")
        elif path.endswith("subtree_control"):
            words = [word for word in file.read_text().split() if word != value[1:]]
            file.write_text(" ".join([*words, value[1:]] if value[0] == "+" else words) + "\n")
        else:
            file.write_text(value + "\n")

    def make(root: Sysroot, group: str, start_files: Mapping[str, str]) -> None:
        real_make(root, group, start_files)
        for name, text in {**start_files, "cgroup.procs": ""}.items():
            if not root.path(f"{group}/{name}").exists():
                root.path(f"{group}/{name}").write_text(text + "\n")

    def rmdir(path: os.PathLike[str]) -> None:
        group = sysroot.base / path
        if not group.exists():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        if (group / "cgroup.procs").read_text().split() or any(child.is_dir() for child in group.iterdir()):
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), path)
        for file in group.iterdir():
            file.unlink()
        group.rmdir()

    for module in (cgroup_directory, cgroup_v1, cgroup_v2):
        monkeypatch.setattr(module, "write_value", write)
    monkeypatch.setattr(cgroup_directory, "make", make)
    monkeypatch.setattr(cgroup_directory, "os", SimpleNamespace(rmdir=rmdir))
