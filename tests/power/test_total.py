"""The formula of a device's power, and when the estimate is offered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from powerlab.boards.registry import detect
from powerlab.domain.errors import PowerlabError
from powerlab.domain.power import Availability, Rail, RailQuantity, SourceProbe, TotalFormula
from powerlab.domain.quantity import Provenance, common_provenance
from powerlab.power.registry import SOURCES, channels_of, probe_all
from powerlab.power.total import choose_total
from powerlab.sysroot import Sysroot

Machine = Callable[[str], Sysroot]


def total_of(sysroot: Sysroot) -> TotalFormula | None:
    return choose_total(probe_all(sysroot), detect(sysroot))


def test_the_board_s_own_formula_comes_first(machine: Machine) -> None:
    sysroot = machine("xavier-jp4")
    assert total_of(sysroot) == detect(sysroot).total


@pytest.mark.parametrize(
    ("name", "rails", "word"),
    [
        ("xeon", ["package-0", "package-1", "package-0/dram", "package-1/dram"], "memory"),
        ("laptop-psys", ["psys"], "psys"),
        ("power-meter", ["power_meter"], "whole machine"),
        ("grace", ["Module Power Socket 0"], "modules"),
        ("psu", ["pmbus pin"], "power supplies"),
        ("unknown-jetson", ["A", "B"], "twice"),
    ],
)
def test_a_formula_is_proposed_in_words(machine: Machine, name: str, rails: list[str], word: str) -> None:
    total = total_of(machine(name))
    assert total is not None
    assert [key.partition(":")[2] for key in total.rails] == rails
    assert total.proposed
    assert word in total.scope


@pytest.mark.parametrize(
    ("name", "rails", "word"),
    [
        ("xgene", ["CPU power", "IO power"], "processor"),
        ("altra", [f"Core Energy {n:03d}" for n in range(1, 13)], "cores alone"),
    ],
)
def test_a_family_of_servers_is_known_by_its_chip_and_has_its_own_formula(
    machine: Machine, name: str, rails: list[str], word: str
) -> None:
    total = total_of(machine(name))
    assert total is not None
    assert [key.partition(":")[2] for key in total.rails] == rails
    assert not total.proposed
    assert word in total.scope


def test_an_input_rail_is_never_added_to_what_it_feeds(machine: Machine) -> None:
    sysroot = machine("orin-nano")
    sysroot.path("/proc/device-tree/compatible").unlink()
    total = total_of(sysroot)
    assert total is not None
    assert total.rails == ("ina3221:VDD_IN",)
    assert total.proposed


def test_a_board_with_a_missing_rail_gets_a_proposal(machine: Machine) -> None:
    sysroot = machine("xavier-jp4")
    sysroot.path("/sys/bus/i2c/drivers/ina3221x/1-0041/iio:device1/in_power2_input").unlink()
    total = total_of(sysroot)
    assert total is not None
    assert total.proposed
    assert len(total.rails) == 5
    assert total.scope.endswith("too low, because SYS5V cannot be read")


def test_a_package_this_user_may_not_read_is_told_in_the_scope(machine: Machine, deny: Callable[[str], None]) -> None:
    sysroot = machine("xeon")
    whole = total_of(sysroot)
    deny("intel-rapl:1/energy_uj")
    total = total_of(sysroot)
    assert whole is not None
    assert total is not None
    assert "too low" not in whole.scope
    assert total.rails == ("rapl:package-0", "rapl:package-0/dram", "rapl:package-1/dram")
    assert "perhaps too low" in total.scope
    assert "this user may not read package-1" in total.scope


TX2_CHIPS = {
    "0-0040": {"VDD_SYS_GPU": (19152, 8), "VDD_SYS_SOC": (19152, 16), "VDD_4V0_WIFI": (4800, 0)},
    "0-0041": {"VDD_IN": (19152, 86), "VDD_SYS_CPU": (19152, 16), "VDD_SYS_DDR": (19152, 9)},
    "0-0042": {"VDD_MUX": (19152, 100), "VDD_5V0_IO_SYS": (4960, 50), "VDD_3V3_SYS": (3300, 10)},
}


@pytest.mark.parametrize("readable", [True, False])
def test_a_tx2_s_total_is_its_input_under_the_old_names_too_and_never_a_sum_with_the_carrier(
    tree: Callable[[dict[str, object]], Sysroot], readable: bool
) -> None:
    files: dict[str, object] = {"/proc/device-tree/compatible": "nvidia,quill\0", "/proc/stat": "cpu 1 1 1 1 1\ncpu0 1"}
    for number, (address, channels) in enumerate(TX2_CHIPS.items()):
        chip = f"/sys/bus/i2c/drivers/ina3221x/{address}/iio:device{number}"
        for index, (name, (millivolts, milliamps)) in enumerate(channels.items()):
            files[f"{chip}/rail_name_{index}"] = name
            files[f"{chip}/in_voltage{index}_input"] = millivolts
            if readable or name != "VDD_IN":
                files[f"{chip}/in_power{index}_input"] = millivolts * milliamps // 1000
    total = total_of(tree(files))
    assert total is not None
    assert total.rails == (("ina3221:VDD_IN",) if readable else ("estimate:host",))


@pytest.mark.parametrize("name", ["amdgpu", "nothing"])
def test_a_graphics_card_alone_is_no_total(machine: Machine, name: str) -> None:
    assert total_of(machine(name)) is None


def test_the_estimate_is_offered_only_where_nothing_gives_a_total(machine: Machine) -> None:
    sysroot = machine("bare")
    total = total_of(sysroot)
    assert total is not None
    assert total.rails == ("estimate:host",)
    assert (
        total.scope
        == "processor and memory of the host, estimated from load: no sensor can be read; without graphics cards"
    )
    assert total.proposed


def test_no_estimate_beside_sensors(machine: Machine) -> None:
    sysroot = machine("xeon")
    (sysroot.base / "proc").mkdir()
    (sysroot.base / "proc/stat").write_text("cpu  1 2 3 4 5 6 7\ncpu0 1 2 3 4\n")
    estimate = probe_all(sysroot)[-1]
    assert (estimate.source, estimate.availability, estimate.rails) == ("estimate", Availability.ABSENT, ())


def _rail(name: str, provenance: Provenance) -> Rail:
    return Rail(
        source="rapl",
        name=name,
        quantity=RailQuantity.ENERGY,
        resolution=0.0,
        relative_error=0.0,
        update_period_s=0.0,
        provenance=provenance,
    )


def test_provenance_is_never_mixed() -> None:
    rails = (_rail("package-0", Provenance.MEASURED), _rail("package-1", Provenance.SIMULATED))
    probe = SourceProbe(source="rapl", availability=Availability.AVAILABLE, detail="", rails=rails)
    assert choose_total([probe], None) is None
    assert choose_total([replace(probe, rails=rails[:1])], None) is not None


def test_rails_of_a_source_that_cannot_be_read_do_not_count() -> None:
    rails = (_rail("package-0", Provenance.MEASURED),)
    probe = SourceProbe(source="rapl", availability=Availability.DENIED, detail="", rails=rails)
    assert choose_total([probe], None) is None


@pytest.mark.parametrize("name", ["xavier-jp5", "orin", "orin-nano", "xeon", "altra", "grace", "psu", "bare"])
def test_every_machine_s_total_can_be_recorded_and_has_one_provenance(machine: Machine, name: str) -> None:
    sysroot = machine(name)
    total = total_of(sysroot)
    assert total is not None
    channels = channels_of(sysroot, total.rails)
    assert [channel.rail.key for channel in channels] == list(total.rails)
    common_provenance(channel.rail.provenance for channel in channels)


def test_a_rail_that_is_not_there_is_named(machine: Machine) -> None:
    with pytest.raises(PowerlabError, match=r"rapl:package-9.*doctor"):
        channels_of(machine("xeon"), ["rapl:package-0", "rapl:package-9"])


def test_keys_and_names_are_unique(machine: Machine) -> None:
    assert len({source.name for source in SOURCES}) == len(SOURCES)
    keys = [rail.key for probe in probe_all(machine("grace")) for rail in probe.rails]
    assert len(set(keys)) == len(keys)
