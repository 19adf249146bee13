"""RAPL zones beyond the plain case: dies, AMD, disabled zones, other doors to the same counter, and the wrap."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.power.base import FileChannel
from powerlab.power.sampling.counters import unwrap
from powerlab.power.sources.rapl import Rapl
from powerlab.power.total import choose_total
from powerlab.sysroot import Sysroot

Tree = Callable[[Mapping[str, object]], Sysroot]
Zone = Callable[..., Mapping[str, object]]
POWERCAP = "/sys/class/powercap"


def errors(sysroot: Sysroot) -> dict[str, float]:
    return {rail.name: rail.relative_error for rail in Rapl().probe(sysroot).rails}


def test_dies_are_packages_of_their_own(tree: Tree, rapl_zone: Zone) -> None:
    sysroot = tree({**rapl_zone("intel-rapl:0", "package-0-die-0"), **rapl_zone("intel-rapl:1", "package-0-die-1")})
    total = choose_total([Rapl().probe(sysroot)], None)
    assert total is not None
    assert total.rails == ("rapl:package-0-die-0", "rapl:package-0-die-1")


def test_a_disabled_zone_counts_all_the_same(tree: Tree, rapl_zone: Zone) -> None:
    """``enabled`` is about the power limit."""
    sysroot = tree({**rapl_zone("intel-rapl:0", "package-0"), f"{POWERCAP}/intel-rapl:0/enabled": 0})
    assert list(errors(sysroot)) == ["package-0"]


def test_errors_by_kind_and_maker(tree: Tree, rapl_zone: Zone) -> None:
    zones = {
        **rapl_zone("intel-rapl:0", "package-0"),
        **rapl_zone("intel-rapl:0:0", "core"),
        **rapl_zone("intel-rapl:0:1", "dram"),
        **rapl_zone("intel-rapl:1", "psys"),
    }
    intel = errors(tree({**zones, "/proc/cpuinfo": "vendor_id\t: GenuineIntel"}))
    assert intel == {"package-0": 0.05, "package-0/core": 0.05, "package-0/dram": 0.2, "psys": 0.1}


@pytest.mark.parametrize("maker", ["AuthenticAMD", "HygonGenuine"])
def test_computed_counters_are_trusted_less(tree: Tree, rapl_zone: Zone, maker: str) -> None:
    sysroot = tree({**rapl_zone("intel-rapl:0", "package-0"), "/proc/cpuinfo": f"vendor_id\t: {maker}\n"})
    assert errors(sysroot) == {"package-0": 0.1}


def test_two_zones_of_one_name_stay_apart_and_a_second_door_is_dropped(tree: Tree, rapl_zone: Zone) -> None:
    sysroot = tree(
        {
            **rapl_zone("intel-rapl:0", "psys"),
            **rapl_zone("intel-rapl:1", "psys"),
            **rapl_zone("intel-rapl-mmio:0", "psys"),
            **rapl_zone("intel-rapl-tpmi:0", "package-7"),
        }
    )
    assert list(errors(sysroot)) == ["psys", "psys@1", "package-7"]


def test_a_second_door_stays_closed_where_only_the_first_is_denied(
    tree: Tree, rapl_zone: Zone, deny: Callable[[str], None]
) -> None:
    sysroot = tree({**rapl_zone("intel-rapl:0", "package-0"), **rapl_zone("intel-rapl-mmio:0", "package-0")})
    deny("intel-rapl:0/energy_uj")
    probe = Rapl().probe(sysroot)
    assert probe.rails == ()
    assert "chmod" in probe.remedy


def test_a_name_without_counter_is_told_and_does_not_hide_others(tree: Tree, rapl_zone: Zone) -> None:
    sysroot = tree({**rapl_zone("intel-rapl:0", "package-0"), f"{POWERCAP}/intel-rapl:1/name": "package-1"})
    probe = Rapl().probe(sysroot)
    assert [rail.name for rail in probe.rails] == ["package-0"]
    assert "package-1" in probe.detail


def test_every_counter_states_step_period_and_range(tree: Tree, rapl_zone: Zone) -> None:
    (channel,) = Rapl().channels(tree(rapl_zone("intel-rapl:0", "package-0")))
    assert isinstance(channel, FileChannel)
    assert channel.rail.resolution == pytest.approx(61.035e-6, rel=1e-4)
    assert channel.rail.update_period_s == 0.001
    assert channel.rail.offset == 0.0
    assert channel.wraps_at == 262143328850 + 61


@given(
    st.integers(0, 2**32 - 1),
    st.lists(st.integers(2**24, 2**30), min_size=1, max_size=60),
    st.sampled_from([262143328850, 65532610987, 262143999938]),
)
def test_energy_across_wraps_is_what_was_drawn(start: int, steps: list[int], range_uj: int) -> None:
    """A register of 32 bits, which the driver scales to µJ, wraps: the difference is right within a step or two."""
    counts = list(accumulate([start, *steps]))
    shown = np.array([count % 2**32 * range_uj // (2**32 - 1) for count in counts], dtype=np.int64)
    step_uj = range_uj / (2**32 - 1)
    unwrapped, cut = unwrap(shown, range_uj + round(step_uj))
    assert cut == 0
    wraps = counts[-1] // 2**32
    assert int(unwrapped[-1] - unwrapped[0]) == pytest.approx(sum(steps) * step_uj, abs=2 + wraps)
