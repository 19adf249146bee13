"""What a policy must reach under load: limits, governors, turbo, and the many ways to ask for less."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.throttling.requested_clock import actual_khz, parse_clocks, parse_processors, requested_clocks

CPUFREQ = "/sys/devices/system/cpu/cpufreq"
POLICY = f"{CPUFREQ}/policy0"
X86 = {"/proc/cpuinfo": "processor\t: 0\nvendor_id\t: GenuineIntel\nflags\t\t: fpu vme aperfmperf"}


def policy(number=0, processors="0 1", *, governor="schedutil", driver="tegra194", top=2265600, limit=None, **more):
    folder = f"{CPUFREQ}/policy{number}"
    files = {
        "affected_cpus": processors,
        "scaling_governor": governor,
        "scaling_driver": driver,
        "cpuinfo_max_freq": top,
        "scaling_max_freq": top if limit is None else limit,
        "scaling_min_freq": 115200,
        "scaling_cur_freq": 115200,
    }
    return {f"{folder}/{name}": value for name, value in (files | more).items()}


def requested_khz(tree, files):
    return [asked.khz for asked in requested_clocks(tree(files))]


def test_without_cpufreq_nothing_is_asked(tree):
    assert requested_clocks(tree({})) == []


@pytest.mark.parametrize("governor", ["performance", "schedutil", "ondemand", "interactive"])
def test_a_climbing_governor_goes_to_the_limit_of_the_mode(tree, governor):
    assert requested_khz(tree, policy(governor=governor)) == [2265600]
    assert requested_khz(tree, policy(governor=governor, limit=1200000)) == [1200000]


def test_other_governors_ask_for_what_they_are_told(tree):
    assert requested_khz(tree, policy(governor="powersave")) == [115200]
    assert requested_khz(tree, policy(governor="userspace", scaling_setspeed=1190400)) == [1190400]
    assert requested_khz(tree, policy(governor="userspace", scaling_setspeed="<unsupported>")) == []
    assert requested_khz(tree, policy(governor="conservative")) == []


def test_policies_know_their_processors_and_their_names(tree):
    first, second = requested_clocks(tree(policy() | policy(2, "2 3", limit=1400000)))
    assert (first.name, first.processors) == ("policy0", {0, 1})
    assert (second.name, second.processors, second.khz) == ("policy2", {2, 3}, 1400000)


def test_a_policy_without_a_core_on_line_is_left_out(tree):
    assert requested_khz(tree, policy(processors="")) == []


def test_turbo_is_not_owed(tree):
    assert requested_khz(tree, X86 | policy(driver="intel_pstate", top=4700000, base_frequency=2300000)) == [2300000]
    cppc = {"/sys/devices/system/cpu/cpu0/acpi_cppc/nominal_freq": 2450}
    assert requested_khz(tree, X86 | cppc | policy(driver="amd-pstate-epp", top=3500000, base_frequency=0)) == [2450000]


def test_an_older_driver_lists_its_clocks_and_the_highest_is_the_guaranteed_one(tree):
    files = X86 | policy(driver="acpi-cpufreq", top=3700000, scaling_available_frequencies="2600000 1900000 1500000")
    assert requested_khz(tree, files) == [2600000]


def test_x86_without_a_guaranteed_clock_is_asked_nothing(tree):
    assert requested_khz(tree, X86 | policy(top=4700000)) == []


@pytest.mark.parametrize("driver", ["intel_pstate", "intel_cpufreq", "amd-pstate", "amd-pstate-epp", "acpi-cpufreq"])
def test_a_driver_of_processors_with_turbo_is_known_by_its_name(tree, driver):
    assert requested_khz(tree, policy(driver=driver, top=4700000)) == []


def test_a_limit_below_the_guaranteed_clock_counts(tree):
    assert requested_khz(tree, X86 | policy(top=4700000, limit=1600000, base_frequency=2300000)) == [1600000]


def test_a_virtual_machine_has_no_clocks_of_its_own(tree):
    guest = {"/proc/cpuinfo": "processor\t: 0\nvendor_id\t: AuthenticAMD\nflags\t\t: fpu hypervisor lahf_lm"}
    assert requested_khz(tree, guest | policy(base_frequency=2000000)) == []


@pytest.mark.parametrize(
    ("preference", "governor", "expected"),
    [
        ("balance_performance", "powersave", True),
        ("performance", "powersave", True),
        ("default", "powersave", True),
        ("power", "powersave", False),
        ("balance_power", "powersave", False),
        ("200", "powersave", False),
        ("power", "performance", True),
    ],
)
def test_a_preference_for_saving_asks_for_nothing_that_can_be_named(tree, preference, governor, expected):
    files = policy(
        governor=governor, driver="intel_pstate", energy_performance_preference=preference, base_frequency=2300000
    )
    assert bool(requested_khz(tree, X86 | files)) == expected


@pytest.mark.parametrize(("profile", "expected"), [("low-power", 0), ("quiet", 0), ("balanced", 1), ("performance", 1)])
def test_a_saving_platform_profile_asks_for_nothing(tree, profile, expected):
    files = X86 | policy(base_frequency=2300000) | {"/sys/firmware/acpi/platform_profile": profile}
    assert len(requested_khz(tree, files)) == expected


@pytest.mark.parametrize(("limit_w", "expected"), [(10, 0), (15, 1), (25, 1)])
def test_a_power_limit_below_the_design_power_is_the_modes_own_wish(tree, limit_w, expected):
    zone = "/sys/class/powercap/intel-rapl:0"
    limits = {
        f"{zone}/constraint_0_power_limit_uw": limit_w * 1_000_000,
        f"{zone}/constraint_0_max_power_uw": 15_000_000,
    }
    assert len(requested_khz(tree, X86 | policy(base_frequency=2300000) | limits)) == expected


def test_a_zone_that_knows_no_design_power_says_nothing(tree):
    limits = {"/sys/class/powercap/intel-rapl:0/constraint_0_power_limit_uw": 1, **policy()}
    assert requested_khz(tree, limits) == [2265600]
    limits["/sys/class/powercap/intel-rapl:0/constraint_0_max_power_uw"] = 0
    assert requested_khz(tree, limits) == [2265600]


def test_the_measured_clock_comes_before_the_one_that_was_set(tree):
    sysroot = tree(policy(scaling_cur_freq=2000000))
    assert actual_khz(sysroot, POLICY) == 2000000
    assert actual_khz(tree({f"{POLICY}/cpuinfo_avg_freq": 1500000}), POLICY) == 1500000
    assert actual_khz(tree({f"{POLICY}/cpuinfo_avg_freq": "<unknown>"}), POLICY) == 2000000
    assert actual_khz(sysroot, f"{CPUFREQ}/policy7") is None


@pytest.mark.parametrize("name", ["affected_cpus", "scaling_governor", "scaling_max_freq", "cpuinfo_max_freq"])
def test_files_that_are_missing_or_hold_something_else_ask_for_nothing(tree, name):
    assert requested_khz(tree, policy() | {f"{POLICY}/{name}": "?"}) == []


@given(st.text(max_size=40))
def test_any_text_may_stand_where_numbers_should(text):
    assert all(number >= 0 for number in parse_processors(text))
    assert all(clock >= 0 for clock in parse_clocks(text))


@given(st.frozensets(st.integers(0, 999), min_size=1))
def test_a_list_of_processors_is_read(numbers):
    assert parse_processors(" ".join(map(str, sorted(numbers)))) == numbers
