"""The quota of the measured worker where the kernel has it in control groups of version 1."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_groups import as_a_kernel
from powerlab.cgroups import parse_cpu_max
from powerlab.domain.errors import PowerlabError
from powerlab.domain.mode import Setting
from powerlab.domain.power import Availability
from powerlab.modes.controller import ModeController
from powerlab.modes.io.permissions import FilePermission
from powerlab.modes.knobs.cpu_quota import cgroup, cgroup_directory, cgroup_v1
from powerlab.modes.knobs.cpu_quota import knob as cpu_quota
from powerlab.modes.knobs.cpu_quota.cgroup_v1 import Version1, parse_quota
from powerlab.modes.knobs.cpu_quota.knob import CpuQuota, join
from powerlab.sysroot import Sysroot

CPU = "/sys/fs/cgroup/cpu,cpuacct"
GROUP = f"{CPU}/powerlab"
MOUNTS = "/proc/self/mounts"
LINES = f"cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\ncgroup {CPU} cgroup rw,nosuid,cpu,cpuacct 0 0"
Make = Callable[[dict[str, str]], Sysroot]


def setting(value: str) -> Setting:
    return Setting(knob="cpu_quota", target="cpu.max", value=value)


def quota_of(machine: Sysroot, group: str = GROUP) -> tuple[str, str]:
    return machine.read(f"{group}/cpu.cfs_quota_us"), machine.read(f"{group}/cpu.cfs_period_us")


@pytest.fixture
def machine(make_tree: Make) -> Sysroot:
    """Four cores and both versions, of which the first has the controller."""
    return make_tree(
        {
            MOUNTS: LINES,
            "/sys/fs/cgroup/unified/cgroup.controllers": "",
            "/proc/self/cgroup": "4:cpu,cpuacct:/user.slice\n0::/user.slice",
            **{f"{CPU}/{name}": text for name, text in (("cpu.cfs_quota_us", "-1"), ("cpu.cfs_period_us", "100000"))},
            f"{CPU}/cgroup.procs": "1\n42",
            **{f"/sys/devices/system/cpu/cpu{core}/topology/core_id": str(core) for core in range(4)},
        }
    )


def test_on_a_hybrid_machine_it_can_be_turned(machine: Sysroot) -> None:
    probe = CpuQuota().probe(machine)
    assert probe.availability is Availability.AVAILABLE
    assert probe.detail == f"the worker's group is {GROUP}"
    assert [mode.name for mode in CpuQuota().modes(machine)] == ["cpu-quota=1", "cpu-quota=2", "cpu-quota=3"]


def test_version_2_is_preferred_where_it_has_the_controller(machine: Sysroot) -> None:
    machine.path("/sys/fs/cgroup/unified/cgroup.controllers").write_text("cpu memory\n")
    machine.path("/sys/fs/cgroup/unified/cgroup.subtree_control").write_text("cpu\n")
    found = cgroup.find(machine)
    assert found is not None
    assert found.group == "/sys/fs/cgroup/unified/powerlab"


def test_the_group_is_made_limited_and_removed(machine: Sysroot, state_dir: Path) -> None:
    controller = ModeController(machine, state_dir)
    assert next(iter(CpuQuota().read(machine))) == setting("no group")
    with controller.applied("cpu-quota=1.5"):
        assert quota_of(machine) == ("150000", "100000")
        assert setting("150000 100000") in CpuQuota().read(machine)
        assert controller.drifted("cpu-quota=1.5") is None
        machine.path(f"{GROUP}/cpu.cfs_quota_us").write_text("99000\n")
        assert "99000 100000" in (controller.drifted("cpu-quota=1.5") or "")
    assert not machine.path(GROUP).exists()


@pytest.mark.parametrize("own", [("70000", "50000"), ("-1", "250000"), ("-1", "100000")])
def test_a_group_that_was_there_keeps_its_quota(machine: Sysroot, state_dir: Path, own: tuple[str, str]) -> None:
    machine.path(GROUP).mkdir()
    for name, text in zip(("quota", "period"), own, strict=True):
        machine.path(f"{GROUP}/cpu.cfs_{name}_us").write_text(text + "\n")
    with ModeController(machine, state_dir).applied("cpu-quota=0.5"):
        assert quota_of(machine) == ("50000", "100000")
    assert quota_of(machine) == own


def test_at_no_moment_has_the_group_half_of_a_change(machine: Sysroot, monkeypatch: pytest.MonkeyPatch) -> None:
    """200000 in each 50000 µs would be four cores, where one or none was and is meant, and a kernel may refuse it."""
    seen: list[tuple[str, str]] = []
    real = cgroup_v1.write_value

    def write(sysroot: Sysroot, path: str, value: str) -> None:
        real(sysroot, path, value)
        seen.append(quota_of(sysroot))

    monkeypatch.setattr(cgroup_v1, "write_value", write)
    for value in ("200000 200000", "50000 50000", "max 100000"):
        CpuQuota().write(machine, setting(value))
    assert {quota for quota in seen if quota[0] != "-1"} == {("200000", "200000"), ("50000", "50000")}
    assert quota_of(machine) == ("-1", "100000")


def test_a_mode_set_to_stay_is_undone(machine: Sysroot, state_dir: Path) -> None:
    controller = ModeController(machine, state_dir)
    controller.set("cpu-quota=2")
    assert quota_of(machine) == ("200000", "100000")
    controller.restore()
    assert not machine.path(GROUP).exists()


def test_the_controller_is_always_on(machine: Sysroot) -> None:
    on = Setting(knob="cpu_quota", target="controller", value="on")
    CpuQuota().write(machine, on)
    assert on in CpuQuota().read(machine)
    with pytest.raises(PowerlabError, match="is on as long as"):
        CpuQuota().write(machine, Setting(knob="cpu_quota", target="controller", value="off"))


def test_files_that_hold_no_numbers_are_told(machine: Sysroot, state_dir: Path) -> None:
    machine.path(GROUP).mkdir()
    machine.path(f"{GROUP}/cpu.cfs_quota_us").write_text("much\n")
    with pytest.raises(PowerlabError, match=r"'much' in each '' is not a quota"):
        CpuQuota().read(machine)
    assert "cpu_quota" not in {setting.knob for setting in ModeController(machine, state_dir)._board.read()}


@pytest.mark.parametrize("value", ["", "150000", "-1 100000", "150000 0", "0 100000", "max"])
def test_a_setting_that_does_not_exist_is_refused(machine: Sysroot, value: str) -> None:
    with pytest.raises(PowerlabError, match="has no setting"):
        CpuQuota().write(machine, setting(value))
    assert not machine.path(GROUP).exists()


def test_a_worker_joins_and_leaves_with_the_group(
    machine: Sysroot, state_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    as_a_kernel(machine, monkeypatch)
    join(machine, 42)
    assert machine.read(f"{CPU}/cgroup.procs").split() == ["1", "42"]
    with ModeController(machine, state_dir).applied("cpu-quota=1"):
        join(machine, 42)
        assert machine.read(f"{GROUP}/cgroup.procs") == "42"
        assert machine.read(f"{CPU}/cgroup.procs") == "1"
    assert not machine.path(GROUP).exists()
    assert machine.read(f"{CPU}/cgroup.procs").split() == ["1", "42"], "what still ran in it moved out of it"


def test_a_process_that_ends_while_it_is_moved_is_no_error(machine: Sysroot, monkeypatch: pytest.MonkeyPatch) -> None:
    as_a_kernel(machine, monkeypatch)
    CpuQuota().write(machine, setting("50000 100000"))
    machine.path(f"{GROUP}/cgroup.procs").write_text("77\n")

    def write(sysroot: Sysroot, path: str, value: str) -> None:
        sysroot.path(f"{GROUP}/cgroup.procs").write_text("")
        raise PowerlabError("no such process")

    monkeypatch.setattr(cgroup_directory, "write_value", write)
    CpuQuota().write(machine, setting("no group"))
    assert not machine.path(GROUP).exists()


def test_a_process_that_does_not_leave_is_told(machine: Sysroot, monkeypatch: pytest.MonkeyPatch) -> None:
    as_a_kernel(machine, monkeypatch)
    CpuQuota().write(machine, setting("50000 100000"))
    machine.path(f"{GROUP}/cgroup.procs").write_text("77\n")
    machine.path("/proc/77").mkdir(parents=True)

    def refuse(sysroot: Sysroot, path: str, value: str) -> None:
        raise PowerlabError(f"{path} does not take {value}")

    monkeypatch.setattr(cgroup_directory, "write_value", refuse)
    with pytest.raises(PowerlabError, match="does not take 77"):
        CpuQuota().write(machine, setting("no group"))
    monkeypatch.setattr(cgroup_directory, "write_value", lambda sysroot, path, value: None)
    monkeypatch.setattr(cgroup_directory, "_LEAVING_S", 0.0)
    with pytest.raises(PowerlabError, match="end what runs in it"):
        CpuQuota().write(machine, setting("no group"))


def test_a_user_without_rights_is_told_two_ways(machine: Sysroot, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (cgroup_v1, cpu_quota):
        monkeypatch.setattr(module, "can_write", lambda sysroot, path: False)
    probe = CpuQuota().probe(machine)
    assert probe.availability is Availability.DENIED
    assert "root" in probe.remedy
    assert "helper" in probe.remedy
    assert "systemd-run" not in probe.remedy, "it hands no group of version 1 over"


def test_a_group_that_somebody_gave_to_this_user_is_used(machine: Sysroot, monkeypatch: pytest.MonkeyPatch) -> None:
    own = f"{CPU}/user.slice"
    machine.path(own).mkdir()
    for module in (cgroup_v1, cpu_quota):
        monkeypatch.setattr(module, "can_write", lambda sysroot, path: path.startswith(own))
    assert CpuQuota().probe(machine).detail == f"the worker's group is {own}/powerlab"
    CpuQuota().write(machine, setting("50000 100000"))
    assert quota_of(machine, f"{own}/powerlab") == ("50000", "100000")


@pytest.mark.parametrize("place", ["", "/unified", "/cpu", "/cpu,cpuacct", "/cpuacct,cpu"])
def test_the_helper_may_move_workers_into_the_group_wherever_systems_mount_it(place: str) -> None:
    permissions = [grant for grant in CpuQuota().permissions if isinstance(grant, FilePermission)]
    path = f"/sys/fs/cgroup{place}/powerlab"
    assert any(grant.covers(f"{path}/cgroup.procs", "4711") for grant in permissions)
    for file in ("tasks", "cpu.cfs_quota_us", "release_agent", "notify_on_release"):
        assert not any(grant.covers(f"{path}/{file}", "4711") for grant in permissions)


@given(quota=st.integers(1000, 10**9), period=st.integers(1000, 10**6))
def test_a_quota_means_the_same_in_both_versions(quota: int, period: int) -> None:
    assert parse_quota(str(quota), str(period)) == f"{quota} {period}"
    assert parse_cpu_max(parse_quota(str(quota), str(period))) == quota / period
    assert parse_cpu_max(parse_quota("-1", str(period))) is None


@given(quota=st.text(), period=st.text())
def test_any_text_is_a_quota_or_refused(quota: str, period: str) -> None:
    try:
        text = parse_quota(quota, period)
    except ValueError:
        return
    assert len(text.split(" ")) == 2


def test_a_kernel_without_quotas_offers_none(machine: Sysroot) -> None:
    machine.path(f"{CPU}/cpu.cfs_quota_us").unlink()
    assert cgroup_v1.find(machine, CPU) is None
    assert cgroup_v1.find(machine, None) is None
    machine.path(f"{CPU}/cpu.cfs_quota_us").write_text("-1\n")
    assert cgroup_v1.find(machine, CPU) == Version1(machine, CPU)
