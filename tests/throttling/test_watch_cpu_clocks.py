"""Clocks below what is asked for count while cores are busy, and only then."""

from __future__ import annotations

import pytest

from powerlab.domain.power import Availability
from powerlab.throttling.cpu_clocks import CpuClocks

CPUFREQ = "/sys/devices/system/cpu/cpufreq"
FULL_KHZ = 2000000


class Machine:
    """Clusters of one core each, whose clocks and load a test sets before every look."""

    def __init__(self, tree, clusters=1):
        self.tree, self.clusters = tree, clusters
        self.ticks = [[0, 0] for _ in range(clusters)]
        files = {}
        for number in range(clusters):
            folder = f"{CPUFREQ}/policy{number}"
            files |= {
                f"{folder}/affected_cpus": number,
                f"{folder}/scaling_governor": "schedutil",
                f"{folder}/scaling_driver": "scmi",
                f"{folder}/cpuinfo_max_freq": FULL_KHZ,
                f"{folder}/scaling_max_freq": FULL_KHZ,
                f"{folder}/scaling_cur_freq": FULL_KHZ,
            }
        self.sysroot = tree(files | self.stat())
        self.watching = CpuClocks().start(self.sysroot)

    def stat(self):
        return {"/proc/stat": "\n".join(f"cpu{n} {work} 0 0 {idle}" for n, (work, idle) in enumerate(self.ticks))}

    def look(self, khz, busy=1.0, cluster=0, times=1):
        """Let 20 ticks pass, at this load and clock in one cluster, and look."""
        for _ in range(times):
            self.ticks[cluster][0] += round(20 * busy)
            self.ticks[cluster][1] += 20 - round(20 * busy)
            self.tree(self.stat() | {f"{CPUFREQ}/policy{cluster}/scaling_cur_freq": khz})
            self.watching.sample()

    def finish(self):
        return self.watching.finish()


def test_full_speed_says_nothing(tree):
    machine = Machine(tree)
    machine.look(FULL_KHZ, times=20)
    assert machine.finish() == ()


def test_a_slow_busy_core_is_told_with_clock_and_share(tree):
    machine = Machine(tree)
    machine.look(FULL_KHZ, times=6)
    machine.look(1200000, times=6)
    (sentence,) = machine.finish()
    assert sentence == (
        "the CPU clocks of policy0 were too low in 50% of the looks at busy cores: "
        "1.20 GHz where 2.00 GHz was requested"
    )


def test_a_slow_idle_core_is_as_it_should_be(tree):
    machine = Machine(tree)
    machine.look(500000, busy=0.5, times=30)
    assert machine.finish() == ()


@pytest.mark.parametrize("looks", [1, 2])
def test_short_bursts_of_load_do_not_count(tree, looks):
    """Governors climb, and the load may have ended when its clock is looked at."""
    machine = Machine(tree)
    for _ in range(20):
        machine.look(500000, busy=1.0, times=looks)
        machine.look(500000, busy=0.0)
    assert machine.finish() == ()


def test_the_last_look_at_a_load_does_not_count(tree):
    """The core was busy until the look, and idle at the look itself: that is no throttling."""
    machine = Machine(tree)
    for _ in range(8):
        machine.look(FULL_KHZ, times=4)
        machine.look(500000)
        machine.look(500000, busy=0.0)
    assert machine.finish() == ()


def test_rounding_and_a_rare_dip_are_no_throttling(tree):
    machine = Machine(tree)
    machine.look(round(FULL_KHZ * 0.96), times=20)
    machine.look(500000)
    assert machine.finish() == ()


def test_a_handful_of_looks_proves_nothing(tree):
    machine = Machine(tree)
    machine.look(500000, times=6)
    assert machine.finish() == (), "the first and the last do not count"
    machine.look(500000)
    assert machine.finish()


def test_two_low_clocks_are_too_few(tree):
    machine = Machine(tree)
    machine.look(FULL_KHZ, times=6)
    machine.look(500000, times=2)
    machine.look(FULL_KHZ, times=2)
    assert machine.finish() == ()


def test_heat_that_lowers_the_limit_meanwhile_does_not_lower_what_was_asked(tree):
    machine = Machine(tree)
    tree({f"{CPUFREQ}/policy0/scaling_max_freq": 1000000})
    machine.look(1000000, times=10)
    (sentence,) = machine.finish()
    assert "1.00 GHz where 2.00 GHz" in sentence


def test_a_limit_that_the_mode_set_before_is_what_was_asked(tree):
    machine = Machine(tree)
    tree({f"{CPUFREQ}/policy0/scaling_max_freq": 1000000})
    machine.watching = CpuClocks().start(machine.sysroot)
    machine.look(1000000, times=10)
    assert machine.finish() == ()


def test_the_worst_cluster_is_named_and_the_others_are_counted(tree):
    machine = Machine(tree, clusters=4)
    for cluster, khz in ((0, 1500000), (1, 800000), (2, FULL_KHZ)):
        machine.look(khz, cluster=cluster, times=10)
    (sentence,) = machine.finish()
    assert "policy1 were too low in 100%" in sentence
    assert sentence.endswith("(and 1 other cluster likewise)")


@pytest.mark.parametrize("text", ["", "<unknown>", "-1e9"])
def test_a_clock_that_cannot_be_read_says_nothing(tree, text):
    machine = Machine(tree)
    machine.look(text, times=10)
    assert machine.finish() == ()


def test_files_that_vanish_say_nothing(tree):
    machine = Machine(tree)
    machine.sysroot.path("/proc/stat").unlink()
    machine.watching.sample()
    machine.watching.sample()
    assert machine.finish() == ()


def test_a_machine_without_cpufreq_reads_nothing(tree):
    watching = CpuClocks().start(tree({}))
    watching.sample()
    assert watching.finish() == ()


def test_the_probe_says_what_must_be_reached_or_what_is_missing(tree):
    assert CpuClocks().probe(tree({})).availability is Availability.ABSENT
    machine = Machine(tree, clusters=2)
    found = CpuClocks().probe(machine.sysroot)
    assert found.availability is Availability.AVAILABLE
    assert found.detail == "2 clusters, to reach 2.00 GHz under load"
    machine.sysroot.path("/proc/stat").unlink()
    found = CpuClocks().probe(machine.sysroot)
    assert found.availability is Availability.ABSENT
    assert "busy" in found.detail
