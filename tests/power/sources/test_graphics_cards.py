"""Graphics cards of AMD and Intel: which of their files become rails, and what is added to a total."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from powerlab.domain.power import Availability, Rail, RailQuantity
from powerlab.power.base import FileChannel
from powerlab.power.registry import probe_all
from powerlab.power.sources.amdgpu import Amdgpu
from powerlab.power.sources.hwmon.source import Hwmon
from powerlab.power.sources.intel_gpu import IntelGpu
from powerlab.power.total import choose_total, total_of_plan
from powerlab.sysroot import Sysroot

ChipFiles = Callable[..., Mapping[str, object]]
Tree = Callable[[Mapping[str, object]], Sysroot]

PACKAGE = {
    "/sys/class/powercap/intel-rapl:0/name": "package-0",
    "/sys/class/powercap/intel-rapl:0/energy_uj": 1000,
    "/sys/class/powercap/intel-rapl:0/max_energy_range_uj": 262143328850,
}


def rails_of(sysroot: Sysroot) -> tuple[Rail, ...]:
    return tuple(rail for probe in probe_all(sysroot) for rail in probe.rails)


def paths_of(channels: object) -> dict[str, str]:
    return {one.rail.name: one.paths[0].rpartition("/")[2] for one in channels if isinstance(one, FileChannel)}  # type: ignore[attr-defined]


def test_amd_s_power_of_now_comes_first_and_the_average_beside_it(tree: Tree, hwmon_chip: ChipFiles) -> None:
    sysroot = tree(
        {
            **hwmon_chip(1, "amdgpu", {"power1_average": 40_000_000, "power1_cap": 1, "power1_label": "PPT"}),
            **hwmon_chip(2, "amdgpu", {"power1_average": 9, "power1_input": 41_000_000, "power1_label": "PPT"}),
        }
    )
    assert paths_of(Amdgpu().channels(sysroot)) == {
        "GPU0": "power1_average",
        "GPU1": "power1_input",
        "GPU1 average": "power1_average",
    }
    assert [rail.update_period_s for rail in Amdgpu().probe(sysroot).rails] == [1.0, 1e-3, 1.0]
    assert Hwmon().probe(sysroot).rails == (), "each card has one source"


@pytest.mark.parametrize("sign", [{"in1_input": 900}, {"power1_label": "slowPPT"}])
def test_power_that_includes_the_cores_is_never_added_to_them(
    tree: Tree, hwmon_chip: ChipFiles, sign: Mapping[str, object]
) -> None:
    sysroot = tree({**PACKAGE, **hwmon_chip(1, "amdgpu", {"power1_average": 15_000_000, **sign})})
    assert [rail.name for rail in Amdgpu().probe(sysroot).rails] == ["APU0"]
    total = choose_total(probe_all(sysroot), None)
    assert total is not None
    assert total.rails == ("rapl:package-0",)
    assert total.lacks_cards


def test_intel_s_card_and_its_package_are_told_apart(tree: Tree, hwmon_chip: ChipFiles) -> None:
    sysroot = tree(
        {
            **PACKAGE,
            **hwmon_chip(1, "xe", {"energy1_input": 5_000_000, "energy2_input": 4_000_000, "power1_max": 190_000_000}),
            **hwmon_chip(2, "i915", {"energy1_input": 7_000_000}),
            **hwmon_chip(3, "i915_gt0", {"energy1_input": 6_000_000}),
            **hwmon_chip(4, "xe", {"energy2_input": 1_000_000}),
        }
    )
    probe = IntelGpu().probe(sysroot)
    names = [rail.name for rail in probe.rails]
    assert sorted(names) == ["GPU0", "GPU0 package", "GPU1", "GPU2 package"]
    assert {rail.quantity for rail in probe.rails} == {RailQuantity.ENERGY}
    total = choose_total(probe_all(sysroot), None)
    assert total is not None
    assert total.rails == ("rapl:package-0", "intel_gpu:GPU0", "intel_gpu:GPU1")
    assert total.scope == (
        "processor packages, without memory, and 2 graphics cards; without disks, fans and supply losses"
    )


def test_a_card_without_a_power_sensor_is_a_state(tree: Tree, hwmon_chip: ChipFiles) -> None:
    sysroot = tree(hwmon_chip(1, "amdgpu", {"temp1_input": 40_000}))
    for source, words in (
        (Amdgpu(), "no AMD graphics with a power sensor"),
        (IntelGpu(), "no Intel graphics card with an energy counter"),
    ):
        probe = source.probe(sysroot)
        assert (probe.availability, probe.detail, probe.rails) == (Availability.ABSENT, words, ())


def test_a_value_that_is_none_is_left_out_with_its_reason(tree: Tree, hwmon_chip: ChipFiles) -> None:
    probe = Amdgpu().probe(tree(hwmon_chip(1, "amdgpu", {"power1_average": "unknown"})))
    assert probe.availability is Availability.BROKEN
    assert "GPU0 (not a decimal integer" in probe.detail


def test_cards_alone_are_a_total_for_plans_on_nothing_else(tree: Tree, hwmon_chip: ChipFiles) -> None:
    sysroot = tree(hwmon_chip(1, "amdgpu", {"power1_input": 40_000_000}))
    probes = probe_all(sysroot)
    assert choose_total(probes, None) is None
    assert total_of_plan(None, rails_of(sysroot), on_cards=False) is None
    alone = total_of_plan(None, rails_of(sysroot), on_cards=True)
    assert alone is not None
    assert (alone.rails, alone.lacks_host, alone.lacks_cards) == (("amdgpu:GPU0",), True, False)


def test_a_total_that_has_the_cards_is_kept_for_them(tree: Tree, hwmon_chip: ChipFiles) -> None:
    sysroot = tree({**PACKAGE, **hwmon_chip(1, "amdgpu", {"power1_input": 40_000_000})})
    total = choose_total(probe_all(sysroot), None)
    assert total is not None
    assert total.rails == ("rapl:package-0", "amdgpu:GPU0")
    assert total_of_plan(total, rails_of(sysroot), on_cards=True) == total
