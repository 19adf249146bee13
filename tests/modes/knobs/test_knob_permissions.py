"""The helper's list has everything that knobs do, and nothing that they do not."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.boards.simulator import create_tree
from powerlab.domain.mode import CURRENT_MODE, Setting
from powerlab.modes.controller import ModeController
from powerlab.modes.io.permissions import FilePermission, ProgramPermission, SettingPermission
from powerlab.modes.knobs.cpu_quota.knob import CpuQuota
from powerlab.modes.registry import KNOBS
from powerlab.sysroot import Sysroot

FILES = [grant for knob in KNOBS for grant in knob.permissions if isinstance(grant, FilePermission)]
PROGRAMS = [grant for knob in KNOBS for grant in knob.permissions if isinstance(grant, ProgramPermission)]
POLICY = "/sys/devices/system/cpu/cpufreq/policy0"
RAPL = "/sys/class/powercap/intel-rapl:0"
MASK = "/sys/devices/17000000.gv11b/tpc_pg_mask"
BOARDS = ["jetson-orin-nano", "jetson-nano", "laptop"]
TRACE_STORES = {"powerlab.modes.io.files", "powerlab.modes.io.programs"}
"""Where what is noted is at home: only those who use it are watched."""


def in_range(grant: FilePermission, sysroot: Sysroot, path: str, value: str) -> bool:
    """Say whether a value lies between what the files beside it say."""
    if grant.between is None:
        return True
    low, high = (int(sysroot.read(f"{path.rpartition('/')[0]}/{name}")) for name in grant.between)
    return low <= int(value) <= high


@pytest.fixture
def actions(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Sysroot, str, tuple[str, ...]]]:
    """Notes every file written and program run, but for those inside a setting that the helper makes as a whole."""
    noted: list[tuple[Sysroot, str, tuple[str, ...]]] = []
    muted = [False]

    def noting(real: Callable[..., object]) -> Callable[..., object]:
        def note(sysroot: Sysroot, path: str, *rest: str, **options: object) -> object:
            if not muted[0]:
                noted.append((sysroot, path, rest))
            return real(sysroot, path, *rest, **options)

        return note

    for name, module in list(sys.modules.items()):
        for function in ("write_value", "run_program"):
            is_knobs = name.startswith("powerlab.modes.") and name not in TRACE_STORES
            if is_knobs and hasattr(module, function):
                monkeypatch.setattr(module, function, noting(getattr(module, function)))
    for knob in KNOBS:
        whole = [grant for grant in knob.permissions if isinstance(grant, SettingPermission)]
        real_write = knob.write

        def write(sysroot: Sysroot, setting: Setting, real_write=real_write, whole=whole) -> None:
            muted[0] = any(grant.covers(setting.target, setting.value) for grant in whole)
            try:
                real_write(sysroot, setting)
            finally:
                muted[0] = False

        monkeypatch.setattr(knob, "write", write)
    return noted


@pytest.mark.parametrize("board", BOARDS)
def test_everything_a_knob_does_is_on_the_list(
    tmp_path: Path, board: str, actions: list[tuple[Sysroot, str, tuple[str, ...]]]
) -> None:
    create_tree(board, tmp_path / "board")
    sysroot = Sysroot(tmp_path / "board")
    controller = ModeController(sysroot, tmp_path / "state")
    modes = [mode for mode in controller.modes() if not mode.requires_reboot and mode != CURRENT_MODE]
    one_of_each = {name.partition("=")[0]: name for name in (mode.name for mode in modes)}
    for name in one_of_each.values():
        with controller.applied(name):
            pass
    assert len(actions) > 10
    for device, path, rest in actions:
        if path.startswith("/usr"):
            assert any(grant.covers(path, rest) for grant in PROGRAMS), (path, rest)
        else:
            covering = [grant for grant in FILES if grant.covers(path, rest[0])]
            assert any(in_range(grant, device, path, rest[0]) for grant in covering), (path, rest)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("/etc/passwd", "1"),
        ("/sys/power/state", "mem"),
        ("/sys/devices/system/cpu/cpu0/online", "2"),
        ("/sys/devices/system/cpu/cpu0/online", "0\n"),
        ("/sys/devices/system/cpu/cpu0/online\n", "0"),
        ("/sys/devices/system/cpu/cpu0/../cpu1/online", "0"),
        ("/sys/devices/system/cpu/cpu0x/online", "0"),
        ("/tmp/sys/devices/system/cpu/cpu0/online", "0"),
        ("sys/devices/system/cpu/cpu0/online", "0"),
        (f"{POLICY}/scaling_governor", "performance\nuserspace"),
        (f"{POLICY}/scaling_governor", "../../evil"),
        (f"{POLICY}/scaling_governor", "x" * 40),
        (f"{POLICY}/scaling_max_freq", "-1"),
        (f"{POLICY}/scaling_max_freq", "1e6"),
        (f"{POLICY}/scaling_max_freq", "٣"),
        (f"{POLICY}/../policy0/scaling_max_freq", "1190400"),
        (f"{POLICY}/scaling_setspeed", "<unsupported>"),
        (f"{POLICY}/energy_performance_preference", "power; reboot"),
        (f"{RAPL}/energy_uj", "1"),
        (f"{RAPL}/constraint_0_power_limit_uw", "0"),
        (f"{RAPL}/constraint_0_power_limit_uw", "999"),
        (f"{RAPL}/constraint_0_power_limit_uw", "99999999999"),
        (f"{RAPL}/constraint_0_time_window_us", "1000000"),
        (f"{RAPL}:0/constraint_0_power_limit_uw", "65000000"),
        ("/sys/class/devfreq/../devfreq/17000000.gv11b/max_freq", "114750000"),
        ("/sys/class/devfreq/15340000.vic/max_freq", "114750000"),
        ("/sys/class/devfreq/17000000.gv11b/max_freq", "114750000 0"),
        ("/sys/class/devfreq/17000000.gv11b/trans_stat", "0"),
        ("/sys/kernel/nvpmodel_emc_cap/../../power/state", "0"),
        ("/sys/kernel/nvpmodel_emc_cap/emc_iso_cap", "mem"),
        ("/sys/kernel/debug/bpmp/debug/clk/emc/rate", "1"),
        ("/sys/kernel/debug/bpmp/debug/clk/../emc/rate", "204000000"),
        ("/sys/firmware/acpi/platform_profile", "low power"),
        ("/sys/firmware/acpi/platform_profile_choices", "balanced"),
        ("/sys/devices/../../etc/x_pg_mask", "0"),
        ("/sys/devices/a/./b/tpc_pg_mask", "0"),
        (MASK, "0x7"),
        (MASK, "7\n"),
        ("/sys/devices/pci0000:00/0000:00:1f.2/power/control", "off"),
        ("/sys/devices/pci0000:00/power/wakeup", "on"),
        ("/sys/devices/pci0000:00/0000:00:1f.2/power/control", "on"),
        ("/sys/devices/17000000.gv11b/power/control", "off"),
        ("/sys/devices/system/cpu/cpu0/cpuidle/state0/disable", "yes"),
        ("/sys/fs/cgroup/powerlab/cgroup.procs", "0"),
        ("/sys/fs/cgroup/powerlab/cgroup.procs", "-1"),
        ("/sys/fs/cgroup/../../etc/powerlab/cgroup.procs", "1"),
        ("/sys/fs/cgroup/system.slice/cgroup.procs", "1"),
        ("/sys/fs/cgroup/powerlab/cpu.max", "1 1"),
        ("/sys/fs/cgroup/cgroup.subtree_control", "+cpu"),
    ],
)
def test_what_no_knob_does_is_not_on_the_list(path: str, value: str) -> None:
    assert not [grant for grant in FILES if grant.covers(path, value)]


@pytest.mark.parametrize("khz", ["0", "115199", "2265601", "99999999"])
def test_clocks_outside_of_the_hardwares_are_refused_by_the_files_beside_them(board: Sysroot, khz: str) -> None:
    path = f"{POLICY}/scaling_max_freq"
    assert not [grant for grant in FILES if grant.covers(path, khz) and in_range(grant, board, path, khz)]


@pytest.mark.parametrize(
    ("program", "arguments"),
    [
        ("/bin/sh", ("-c", "true")),
        ("/usr/sbin/nvpmodel", ()),
        ("/usr/sbin/nvpmodel", ("-m", "0; reboot")),
        ("/usr/sbin/nvpmodel", ("-m", "0", "--force")),
        ("/usr/sbin/nvpmodel", ("-f", "/tmp/evil.conf")),
        ("/usr/sbin/../bin/nvpmodel", ("-q",)),
        ("/usr/bin/jetson_clocks", ("--restore", "/tmp/evil")),
        ("/usr/bin/jetson_clocks", ("--store", "/etc/shadow")),
    ],
)
def test_programs_get_no_other_arguments(program: str, arguments: tuple[str, ...]) -> None:
    assert not [grant for grant in PROGRAMS if grant.covers(program, arguments)]


@given(st.text(max_size=60), st.text(max_size=20))
def test_no_text_with_dots_or_line_ends_is_ever_covered(path: str, value: str) -> None:
    for hostile in (f"{path}/../{value}", f"/sys/{path}\n", f"/sys/devices/{path}/./{value}"):
        assert not [grant for grant in FILES if grant.covers(hostile, value)]


@pytest.mark.parametrize("value", ["", "max", "0 100000", "150000", "150000 100000\n", "on", "150000 100000 +cpu"])
def test_a_group_gets_quotas_and_nothing_else(value: str) -> None:
    permissions = [grant for grant in CpuQuota().permissions if isinstance(grant, SettingPermission)]
    assert not [grant for grant in permissions if grant.covers("cpu.max", value)]
    assert not [grant for grant in permissions if grant.covers("../cpu.max", "150000 100000")]
