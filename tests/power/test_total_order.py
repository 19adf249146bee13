"""Which of several sources speaks for the whole device."""

from __future__ import annotations

from dataclasses import replace

import pytest

from powerlab.boards.board import Board
from powerlab.boards.registry import find_board
from powerlab.domain.power import Availability, Rail, RailQuantity, SourceProbe, TotalFormula
from powerlab.domain.quantity import Provenance
from powerlab.power.total import choose_total

XAVIER = ("GPU", "CPU", "SOC", "CV", "VDDRQ", "SYS5V")


def probe(source: str, *names: str, provenance: Provenance = Provenance.MEASURED) -> SourceProbe:
    rails = tuple(
        Rail(
            source=source,
            name=name,
            quantity=RailQuantity.POWER,
            resolution=0.0,
            relative_error=0.0,
            update_period_s=0.0,
            provenance=provenance,
        )
        for name in names
    )
    return SourceProbe(source=source, availability=Availability.AVAILABLE, detail="", rails=rails)


def test_a_wall_meter_comes_before_everything_and_is_no_guess() -> None:
    meter = replace(probe("meter", "wall"), detail="tcp://desk:5025: the supply of the board")
    total = choose_total([probe("ina3221", *XAVIER), meter], find_board("jetson-agx-xavier"))
    assert total is not None
    assert (total.rails, total.proposed) == (("meter:wall",), False)
    assert total.scope == "the external meter at tcp://desk:5025: the supply of the board"


@pytest.mark.parametrize("source", ["tegrastats", "jtop"])
def test_a_program_that_tells_the_same_rails_stands_in_for_files_nobody_may_read(source: str) -> None:
    board = find_board("jetson-agx-xavier")
    total = choose_total([probe(source, *XAVIER, "EXTRA")], board)
    assert total is not None
    assert board.total is not None
    assert total.rails == tuple(f"{source}:{name}" for name in XAVIER)
    assert total.scope == f"{board.total.scope}; as {source} tells it"
    assert not total.proposed


def test_files_come_before_the_program_and_the_two_are_never_mixed() -> None:
    board = find_board("jetson-agx-xavier")
    both = [probe("ina3221", *XAVIER), probe("tegrastats", *XAVIER)]
    assert choose_total(both, board) == board.total
    halves = [probe("ina3221", *XAVIER[:3]), probe("tegrastats", *XAVIER[3:])]
    total = choose_total(halves, board)
    assert total is not None
    assert total.rails == tuple(f"ina3221:{name}" for name in XAVIER[:3])
    assert "too low" in total.scope


def test_a_rail_for_each_core_is_written_with_a_star() -> None:
    formula = TotalFormula(rails=("hwmon:Core Energy *", "hwmon:IO power"), scope="all of it")
    board = Board(name="many-cores", title="Many cores", total=formula)
    cores = [f"Core Energy {number:03d}" for number in range(5)]
    total = choose_total([probe("hwmon", *cores, "IO power", "fan")], board)
    assert total == TotalFormula(rails=(*(f"hwmon:{name}" for name in cores), "hwmon:IO power"), scope="all of it")
    without = choose_total([probe("hwmon", "IO power")], board)
    assert without is not None
    assert without.proposed, "no core was found, so this is not the board's formula"
    assert without.rails == ("hwmon:IO power",)


@pytest.mark.parametrize(
    ("probes", "rails"),
    [
        ([probe("battery", "BAT0", "BAT1"), probe("rapl", "package-0")], ("rapl:package-0",)),
        ([probe("battery", "BAT0", "BAT1")], ("battery:BAT0", "battery:BAT1")),
        ([probe("ipmi", "system"), probe("battery", "BAT0")], ("ipmi:system",)),
        ([probe("ipmi", "system"), probe("hwmon", "pmbus pin")], ("hwmon:pmbus pin",)),
        ([probe("ina238", "VDD_IN", "VDD_GPU")], ("ina238:VDD_IN",)),
        ([probe("ina238", "VIN", "other")], ("ina238:VIN",)),
        ([probe("ina238", "ina238@1-0040", "ina238@1-0041"), probe("rapl", "package-0")], ("rapl:package-0",)),
        ([probe("ina238", "A", "B")], ("ina238:A", "ina238:B")),
        ([probe("hwmon", "amd_energy Esocket0", "amd_energy Ecore000")], ("hwmon:amd_energy Esocket0",)),
        (
            [
                probe("hwmon", "macsmc_hwmon Total System Power", "macsmc_hwmon AC Input Power"),
                probe("battery", "BAT0"),
            ],
            ("hwmon:macsmc_hwmon Total System Power",),
        ),
        ([probe("hwmon", "corsairpsu power total", "corsairpsu power +12v")], ("hwmon:corsairpsu power total",)),
        ([probe("hwmon", "amdgpu PPT")], None),
        ([probe("nvml", "GPU0")], None),
        (  # a card's board is added to the host once; what lies inside a package, a card or an APU never is
            [
                probe("rapl", "package-0", "package-0/core", "package-0/uncore", "package-0/dram", "psys"),
                probe("nvml", "GPU0", "GPU0 instant", "GPU0 average"),
                probe("amdgpu", "GPU0", "GPU0 average", "APU1"),
                probe("intel_gpu", "GPU0", "GPU0 package"),
            ],
            ("rapl:package-0", "rapl:package-0/dram", "nvml:GPU0", "amdgpu:GPU0", "intel_gpu:GPU0"),
        ),
        ([probe("hwmon", "power_meter"), probe("nvml", "GPU0")], ("hwmon:power_meter",)),
    ],
)
def test_the_order_on_an_unknown_machine(probes: list[SourceProbe], rails: tuple[str, ...] | None) -> None:
    total = choose_total(probes, None)
    assert (None if total is None else total.rails) == rails
    assert total is None or total.proposed


def test_a_stand_in_of_another_provenance_is_not_taken_in_part() -> None:
    rails = (
        *probe("tegrastats", *XAVIER[:5]).rails,
        *probe("tegrastats", XAVIER[5], provenance=Provenance.SIMULATED).rails,
    )
    mixed = SourceProbe(source="tegrastats", availability=Availability.AVAILABLE, detail="", rails=rails)
    assert choose_total([mixed], find_board("jetson-agx-xavier")) is None
