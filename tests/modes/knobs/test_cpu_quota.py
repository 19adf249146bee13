"""The quota of the measured worker, on simulated boards and on trees that stand for a kernel's control groups."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kernel_groups import as_a_kernel
from powerlab.domain.errors import PowerlabError
from powerlab.domain.mode import Setting
from powerlab.domain.power import Availability
from powerlab.modes.controller import ModeController
from powerlab.modes.knobs.cpu_quota import cgroup_v2
from powerlab.modes.knobs.cpu_quota import knob as cpu_quota
from powerlab.modes.knobs.cpu_quota.knob import CpuQuota, join
from powerlab.sysroot import Sysroot

ROOT = "/sys/fs/cgroup"
SCOPE = "/user.slice/user-1000.slice/user@1000.service/app.slice/run-7.scope"
MOUNTS = "/proc/self/mounts"
CGROUP2 = f"proc /proc proc rw 0 0\ncgroup2 {ROOT} cgroup2 rw,nosuid 0 0"
Make = Callable[[dict[str, str]], Sysroot]


def setting(target: str, value: str) -> Setting:
    return Setting(knob="cpu_quota", target=target, value=value)


def files(controllers: str = "cpuset cpu io memory pids", on: str = "cpu memory pids") -> dict[str, str]:
    return {
        MOUNTS: CGROUP2,
        f"{ROOT}/cgroup.controllers": controllers,
        f"{ROOT}/cgroup.subtree_control": on,
        **{f"/sys/devices/system/cpu/cpu{core}/topology/core_id": str(core) for core in range(4)},
    }


@pytest.fixture
def machine(make_tree: Make) -> Sysroot:
    return make_tree(files())


def test_the_group_is_made_limited_and_removed(machine: Sysroot, state_dir: Path) -> None:
    controller = ModeController(machine, state_dir)
    assert CpuQuota().read(machine)[0] == setting("cpu.max", "no group")
    with controller.applied("cpu-quota=1.5") as mode:
        assert machine.read(f"{ROOT}/powerlab/cpu.max") == "150000 100000"
        assert mode.online_cores is None, "more threads than the quota are legal: they wait"
        assert mode.description.startswith("the measured worker gets the time of 1.5 cores")
        assert controller.drifted("cpu-quota=1.5") is None
    assert not machine.path(f"{ROOT}/powerlab").exists()


def test_a_group_that_was_there_keeps_its_quota(machine: Sysroot, state_dir: Path) -> None:
    machine.path(f"{ROOT}/powerlab").mkdir()
    machine.path(f"{ROOT}/powerlab/cpu.max").write_text("70000 50000\n")
    with ModeController(machine, state_dir).applied("cpu-quota=0.5"):
        assert machine.read(f"{ROOT}/powerlab/cpu.max") == "50000 100000"
    assert machine.read(f"{ROOT}/powerlab/cpu.max") == "70000 50000"


def test_the_controller_is_switched_on_and_off_again(make_tree: Make, state_dir: Path) -> None:
    machine = make_tree(files(on="memory pids"))
    with ModeController(machine, state_dir).applied("cpu-quota=2"):
        assert machine.read(f"{ROOT}/cgroup.subtree_control") == "memory pids cpu"
    assert machine.read(f"{ROOT}/cgroup.subtree_control") == "memory pids"


def test_quotas_of_parts_of_the_machine_are_offered(machine: Sysroot) -> None:
    assert [mode.name for mode in CpuQuota().modes(machine)] == ["cpu-quota=1", "cpu-quota=2", "cpu-quota=3"]


@pytest.mark.parametrize("name", ["cpu-quota=0", "cpu-quota=0.001", "cpu-quota=4.5", "cpu-quota=999999999"])
def test_quotas_out_of_range_are_refused_with_the_range(machine: Sysroot, name: str) -> None:
    with pytest.raises(PowerlabError, match=r"give 0\.01 to 4 cores"):
        CpuQuota().parse(machine, name)


@pytest.mark.parametrize("name", ["cpu-quota=half", "cpu-quota=50%", "cpu-quota=1,5", "cpu-quota="])
def test_malformed_quotas_are_refused_with_an_example(machine: Sysroot, name: str) -> None:
    with pytest.raises(PowerlabError, match=r"write it like cpu-quota=1\.5"):
        CpuQuota().parse(machine, name)


CPU_1 = "/sys/fs/cgroup/cpu,cpuacct"


@pytest.mark.parametrize(
    ("tree", "why", "remedy"),
    [
        ({}, "no control groups are mounted", "run outside of the container"),
        ({MOUNTS: "proc /proc proc rw 0 0"}, "no control groups are mounted", "mount -t cgroup2"),
        (
            {MOUNTS: f"cgroup2 {ROOT}/unified cgroup2 rw 0 0", f"{ROOT}/unified/cgroup.controllers": ""},
            f"in {ROOT}/unified do not have the controller cpu",
            "mount -t cgroup -o cpu",
        ),
        (files(controllers="memory pids"), f"in {ROOT} do not have the controller cpu", "outside of the container"),
        (
            {MOUNTS: f"cgroup {CPU_1} cgroup rw,cpu,cpuacct 0 0", f"{CPU_1}/cpu.shares": "1024"},
            f"{CPU_1} has no cpu.cfs_quota_us",
            "CONFIG_CFS_BANDWIDTH=y",
        ),
    ],
    ids=["nothing", "no mounts", "hybrid without version 1", "no cpu controller", "kernel without quotas"],
)
def test_where_nothing_can_limit_it_is_absent_with_a_remedy(
    make_tree: Make, tree: dict[str, str], why: str, remedy: str
) -> None:
    machine = make_tree(tree)
    probe = CpuQuota().probe(machine)
    assert probe.availability is Availability.ABSENT
    assert why in probe.detail
    assert remedy in probe.remedy
    assert "unified_cgroup_hierarchy" not in probe.remedy, "nobody needs to boot into another version"
    assert list(CpuQuota().read(machine)) == []
    join(machine, 1)
    with pytest.raises(PowerlabError, match="control groups are gone"):
        CpuQuota().write(machine, setting("cpu.max", "100000 100000"))


def test_a_user_without_rights_is_told_three_ways(machine: Sysroot, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (cgroup_v2, cpu_quota):
        monkeypatch.setattr(module, "can_write", lambda sysroot, path: False)
    probe = CpuQuota().probe(machine)
    assert probe.availability is Availability.DENIED
    for way in ("root", "helper", "systemd-run --user --scope -p Delegate=yes", "/sys/fs/cgroup mounted writable"):
        assert way in probe.remedy


@pytest.mark.parametrize("value", ["", "fast", "150000", "0 100000", "150000 100000 1", "-1 100000", "max"])
def test_a_setting_that_does_not_exist_is_refused(machine: Sysroot, value: str) -> None:
    with pytest.raises(PowerlabError, match="has no setting"):
        CpuQuota().write(machine, setting("cpu.max", value))
    assert not machine.path(f"{ROOT}/powerlab").exists()


def test_a_worker_joins_the_group_there_is_and_none_otherwise(
    machine: Sysroot, state_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    as_a_kernel(machine, monkeypatch)
    machine.path(f"{ROOT}/cgroup.procs").write_text("1\n42\n")
    join(machine, 42)
    assert machine.read(f"{ROOT}/cgroup.procs").split() == ["1", "42"]
    with ModeController(machine, state_dir).applied("cpu-quota=1"):
        join(machine, 42)
        assert machine.read(f"{ROOT}/powerlab/cgroup.procs") == "42"
        assert machine.read(f"{ROOT}/cgroup.procs") == "1"
    assert not machine.path(f"{ROOT}/powerlab").exists()


def test_in_a_group_handed_over_the_others_move_aside_first(
    make_tree: Make, state_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A group that limits its children may hold no processes of its own (kernel, cgroup-v2: no internal processes)."""
    own = {
        "cgroup.controllers": "cpu memory",
        "cgroup.subtree_control": "",
        "cgroup.procs": "7\n8",
        "cgroup.events": "populated 1",
    }
    machine = make_tree(
        files() | {"/proc/self/cgroup": f"0::{SCOPE}"} | {f"{ROOT}{SCOPE}/{name}": text for name, text in own.items()}
    )
    as_a_kernel(machine, monkeypatch)
    for module in (cgroup_v2, cpu_quota):
        monkeypatch.setattr(module, "can_write", lambda sysroot, path: path.startswith(f"{ROOT}{SCOPE}"))
    assert CpuQuota().probe(machine).detail == f"the worker's group is {ROOT}{SCOPE}/powerlab"
    with ModeController(machine, state_dir).applied("cpu-quota=1"):
        assert machine.read(f"{ROOT}{SCOPE}/cgroup.procs") == ""
        assert machine.read(f"{ROOT}{SCOPE}/powerlab-rest/cgroup.procs").split() == ["7", "8"]
        machine.path("/proc/self/cgroup").write_text(f"0::{SCOPE}/powerlab-rest\n")
        join(machine, 8)
        assert machine.read(f"{ROOT}{SCOPE}/powerlab/cgroup.procs") == "8"
        assert machine.read(f"{ROOT}{SCOPE}/cgroup.subtree_control") == "cpu"
    assert not machine.path(f"{ROOT}{SCOPE}/powerlab").exists()
    assert machine.read(f"{ROOT}{SCOPE}/cgroup.subtree_control") == ""


def test_at_the_top_of_a_container_the_others_move_aside_too(
    make_tree: Make, state_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a container sees as the top is a group like others to the kernel, which shows in its files."""
    top = {f"{ROOT}/cgroup.events": "populated 1", f"{ROOT}/cgroup.procs": "1\n8", "/proc/self/cgroup": "0::/"}
    machine = make_tree(files(on="") | top)
    as_a_kernel(machine, monkeypatch)
    with ModeController(machine, state_dir).applied("cpu-quota=1"):
        assert machine.read(f"{ROOT}/cgroup.procs") == ""
        assert machine.read(f"{ROOT}/powerlab-rest/cgroup.procs").split() == ["1", "8"]
        machine.path("/proc/self/cgroup").write_text("0::/powerlab-rest\n")
        join(machine, 8)
        assert machine.read(f"{ROOT}/powerlab/cgroup.procs") == "8"
    assert not machine.path(f"{ROOT}/powerlab").exists()
    assert machine.read(f"{ROOT}/powerlab-rest/cgroup.procs").split() == ["1", "8"], "it left the group, and still runs"
    assert machine.read(f"{ROOT}/cgroup.subtree_control") == ""


def test_a_group_with_groups_of_others_in_it_stays(machine: Sysroot, monkeypatch: pytest.MonkeyPatch) -> None:
    as_a_kernel(machine, monkeypatch)
    CpuQuota().write(machine, setting("cpu.max", "100000 100000"))
    machine.path(f"{ROOT}/powerlab/child").mkdir()
    machine.path(f"{ROOT}/powerlab/cgroup.procs").write_text("8\n")
    with pytest.raises(PowerlabError, match="remove the groups in it"):
        CpuQuota().write(machine, setting("cpu.max", "no group"))
    assert machine.read(f"{ROOT}/powerlab/cgroup.procs") == "8"


def test_a_group_in_which_something_runs_is_not_removed_in_silence(machine: Sysroot) -> None:
    CpuQuota().write(machine, setting("cpu.max", "100000 100000"))
    machine.path(f"{ROOT}/powerlab/child").mkdir()
    with pytest.raises(PowerlabError, match="end what runs in it"):
        CpuQuota().write(machine, setting("cpu.max", "no group"))


def test_nothing_of_this_machine_joins_a_simulated_boards_group(board: Sysroot, controller: ModeController) -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    with controller.applied("cpu-quota=1"):
        join(board, process.pid)
        assert board.read(f"{ROOT}/powerlab/cpu.max") == "100000 100000"
        assert board.read(f"{ROOT}/powerlab/cgroup.procs") == ""
    process.communicate(b"\n")
