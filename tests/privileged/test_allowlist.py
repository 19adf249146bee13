from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from powerlab.modes.io.permissions import FilePermission, ProgramPermission
from powerlab.modes.registry import KNOBS
from powerlab_helper.allowlist import REGISTERS, SENSOR_FILES, Allowed
from powerlab_helper.safe_open import is_plain

FILE_GRANTS = [grant for knob in KNOBS for grant in knob.permissions if isinstance(grant, FilePermission)]
PROGRAM_GRANTS = [grant for knob in KNOBS for grant in knob.permissions if isinstance(grant, ProgramPermission)]
PATTERNS = sorted({*SENSOR_FILES, *(grant.path for grant in FILE_GRANTS)})
ALLOWED = Allowed()


@pytest.mark.parametrize("pattern", PATTERNS)
def test_every_file_of_the_list_lies_below_sys(pattern: str) -> None:
    @settings(max_examples=25)  # of each of many patterns
    @given(st.from_regex(pattern, fullmatch=True))
    def holds(path: str) -> None:
        if is_plain(path):
            assert path.startswith("/sys/")

    holds()


@given(st.text(max_size=80) | st.sampled_from(["/etc/shadow", "/sys/kernel/uevent_helper", "/proc/sysrq-trigger"]))
def test_what_is_not_listed_is_neither_read_nor_written(path: str) -> None:
    assert not ALLOWED.may_read(path)
    assert not ALLOWED.may_write(path)
    assert ALLOWED.write_permissions(path, "1") == []


@pytest.mark.parametrize("grant", FILE_GRANTS, ids=lambda grant: grant.path)
def test_a_value_is_one_short_line(grant: FilePermission) -> None:
    @given(st.from_regex(grant.values, fullmatch=True))
    def holds(value: str) -> None:
        assert len(value) <= 64
        assert "\n" not in value
        assert "/" not in value

    holds()


@pytest.mark.parametrize(
    "path",
    [
        "/sys/class/powercap/intel-rapl:0/energy_uj",
        "/sys/class/powercap/intel-rapl:1:0/energy_uj",
        "/sys/class/powercap/intel-rapl-mmio:0/energy_uj",
        "/sys/class/hwmon/hwmon12/power1_average",
        "/sys/class/hwmon/hwmon0/energy128_input",
        "/sys/class/hwmon/hwmon3/device/power1_average",
        "/sys/class/hwmon/hwmon3/curr1_input",
        "/sys/bus/i2c/drivers/ina3221/1-0040/hwmon/hwmon4/in1_input",
        "/sys/bus/i2c/drivers/ina3221x/6-0040/iio:device0/in_power0_input",
        "/sys/class/power_supply/BAT0/power_now",
    ],
)
def test_sensors_are_read_and_not_written(path: str) -> None:
    assert ALLOWED.may_read(path)
    assert not ALLOWED.may_write(path)


@pytest.mark.parametrize(
    "path",
    [
        "/sys/class/powercap/intel-rapl/energy_uj",
        "/sys/class/powercap/../../etc/energy_uj",
        "/sys/class/hwmon/hwmon1/pwm1",
        "/sys/class/hwmon/hwmon1/power1_input/../pwm1",
        "/sys/class/hwmon/hwmon1/power1_input\n",
        "/x/sys/class/hwmon/hwmon1/power1_input",
    ],
)
def test_what_only_looks_like_a_sensor_is_refused(path: str) -> None:
    assert not ALLOWED.may_read(path)


def test_clocks_of_every_cluster_may_be_set_and_nothing_else_of_it() -> None:
    policy = "/sys/devices/system/cpu/cpufreq/policy12"
    assert ALLOWED.write_permissions(f"{policy}/scaling_governor", "performance")
    assert ALLOWED.write_permissions(f"{policy}/scaling_max_freq", "1190400")
    assert not ALLOWED.write_permissions(f"{policy}/scaling_max_freq", "-1")
    assert not ALLOWED.write_permissions(f"{policy}/scaling_max_freq", "1\n2")
    assert not ALLOWED.write_permissions(f"{policy}/scaling_setspeed", "<unsupported>")
    assert not ALLOWED.may_write(f"{policy}/scaling_driver")


@pytest.mark.parametrize("grant", PROGRAM_GRANTS, ids=lambda grant: " ".join((grant.program, *grant.arguments)))
def test_programs_lie_where_only_root_installs(grant: ProgramPermission) -> None:
    assert re.match(r"/(usr/)?s?bin/[a-z_0-9-]+$", grant.program)
    assert ALLOWED.may_run(grant.program)
    assert not ALLOWED.may_run_with(grant.program, [*grant.arguments, "and more"])


def test_no_shell_is_on_the_list() -> None:
    for program in ("/bin/sh", "/bin/bash", "nvpmodel", "/usr/sbin/../bin/sh", ""):
        assert not ALLOWED.may_run(program)


def test_registers_are_named_one_by_one() -> None:
    assert sorted(REGISTERS) == [0x19C, 0x1B1, 0x64F, 0x690, 0x6B0, 0x6B1]
