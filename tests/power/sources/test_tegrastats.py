"""tegrastats: lines of all releases, and the program run as a source."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from device_programs import write_program
from powerlab.boards.registry import find_board
from powerlab.domain.power import Availability
from powerlab.domain.quantity import Provenance
from powerlab.power.registry import probe_all
from powerlab.power.sampling.recorder import Recorder
from powerlab.power.sources import tegrastats as module
from powerlab.power.sources.tegrastats import Tegrastats, parse_line
from powerlab.power.total import choose_total
from powerlab.sysroot import SIMULATION_MARKER, Sysroot

Machine = Callable[[str], Sysroot]
PATIENCE_S = 20.0

TX2 = (
    "RAM 1404/7860MB (lfb 236x4MB) SWAP 0/3930MB (cached 0MB) CPU [0%@345,off,off,0%@345,0%@345,0%@345] EMC_FREQ 0% "
    "GR3D_FREQ 0% PLL@35.5C MCPU@35.5C PMIC@100C Tboard@30C GPU@32C BCPU@35.5C thermal@34.1C Tdiode@31.5C "
    "VDD_SYS_GPU 153/153 VDD_SYS_SOC 306/306 VDD_4V0_WIFI 0/0 VDD_IN 1649/1649 VDD_SYS_CPU 306/306 VDD_SYS_DDR 173/173"
)
NANO = (
    "RAM 1923/3964MB (lfb 2x2MB) SWAP 191/1982MB (cached 6MB) IRAM 0/252kB(lfb 252kB) CPU [5%@1224,4%@1224] "
    "EMC_FREQ 0%@1600 GR3D_FREQ 0%@76 APE 25 PLL@37C CPU@40C PMIC@50C GPU@40C AO@45C thermal@40C "
    "POM_5V_IN 1750/1628 POM_5V_GPU 0/0 POM_5V_CPU 366/406"
)
XAVIER = (
    "RAM 2371/31918MB (lfb 6822x4MB) SWAP 0/15959MB (cached 0MB) CPU [0%@1191,0%@1190] EMC_FREQ 0%@1331 "
    "GR3D_FREQ 0%@114 VIC_FREQ 115 APE 150 MTS fg 1% bg 1% AUX@36C CPU@36.5C Tdiode@38.75C PMIC@50C "
    "GPU 1155/1155 CPU 385/385 SOC 2504/2503 CV 0/0 VDDRQ 192/192 SYS5V 2692/2692"
)
XAVIER_LATER = XAVIER.replace("1155/1155", "1155mW/1155mW").replace("385/385", "385mW/385mW")
ORIN_NANO = (
    "04-27-2026 14:59:43 RAM 775/7620MB (lfb 3x4MB) SWAP 0/3810MB (cached 0MB) CPU [0%@729,off,off,0%@729] "
    "GR3D_FREQ 0% cpu@48.562C cv0@-256C tj@49.062C "
    "VDD_IN 4761mW/4777mW VDD_CPU_GPU_CV 515mW/502mW VDD_SOC 1428mW/1428mW"
)


@pytest.mark.parametrize(
    ("text", "rails_mw"),
    [
        (
            TX2,
            {
                "VDD_SYS_GPU": 153,
                "VDD_SYS_SOC": 306,
                "VDD_4V0_WIFI": 0,
                "VDD_IN": 1649,
                "VDD_SYS_CPU": 306,
                "VDD_SYS_DDR": 173,
            },
        ),
        (NANO, {"POM_5V_IN": 1750, "POM_5V_GPU": 0, "POM_5V_CPU": 366}),
        (XAVIER, {"GPU": 1155, "CPU": 385, "SOC": 2504, "CV": 0, "VDDRQ": 192, "SYS5V": 2692}),
        (XAVIER_LATER, {"GPU": 1155, "CPU": 385, "SOC": 2504, "CV": 0, "VDDRQ": 192, "SYS5V": 2692}),
        (ORIN_NANO, {"VDD_IN": 4761, "VDD_CPU_GPU_CV": 515, "VDD_SOC": 1428}),
        ("RAM 775/7620MB (lfb 3x4MB) GR3D_FREQ 0% cpu@48.562C", {}),
    ],
)
def test_rails_are_the_present_power_and_nothing_else_is_one(text: str, rails_mw: Mapping[str, int]) -> None:
    assert parse_line(text).rails_w == pytest.approx({name: mw * 1e-3 for name, mw in rails_mw.items()})


def test_temperatures_leave_out_dead_sensors_and_the_constant_one() -> None:
    assert parse_line(ORIN_NANO).temperatures_c == {"cpu": 48.562, "tj": 49.062}
    assert "PMIC" not in parse_line(TX2).temperatures_c
    assert parse_line(TX2).temperatures_c["GPU"] == 32.0


def test_a_leading_date() -> None:
    assert parse_line(ORIN_NANO).date == datetime(2026, 4, 27, 14, 59, 43)
    assert parse_line(XAVIER).date is None


@pytest.mark.parametrize(
    "text", ["", "tegrastats: command not found", "GPU 12W/12W", "VDD_IN 5mW/5", "99-99-2026 00:00:00 RAM 1/2MB"]
)
def test_other_text_is_no_line(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_line(text)


@given(st.text(), st.sampled_from([TX2, NANO, XAVIER, ORIN_NANO, ""]), st.integers(0, 200))
def test_any_line_is_rails_or_no_line(text: str, line: str, position: int) -> None:
    for candidate in (text, line[:position] + text + line[position:], text.join(line.split(" "))):
        try:
            found = parse_line(candidate)
        except ValueError:
            continue
        assert all(math.isfinite(power_w) and power_w >= 0 for power_w in found.rails_w.values())
        assert all(math.isfinite(value) for value in found.temperatures_c.values())


@given(st.dictionaries(st.from_regex(r"[A-Z][A-Z0-9_]{1,12}", fullmatch=True), st.integers(0, 99999), min_size=1))
def test_what_is_printed_in_either_form_is_read_back(rails_mw: Mapping[str, int]) -> None:
    for form in ("{0} {1}/{1}", "{0} {1}mW/{1}mW"):
        rails = " ".join(form.format(*item) for item in rails_mw.items())
        found = parse_line(f"RAM 1/2MB (lfb 3x4MB) {rails}").rails_w
        assert found == pytest.approx({name: mw * 1e-3 for name, mw in rails_mw.items()})


PROGRAM = """
import sys, time
assert sys.argv[1:] == ["--interval", "100"], sys.argv
while True:
    print({line!r}, flush=True)
    time.sleep(0.02)
"""


@pytest.fixture
def locked_xavier(machine: Machine, deny: Callable[[str], None]) -> Sysroot:
    """A Xavier whose rails only root may read, with the program."""
    sysroot = machine("xavier-jp4")
    deny("_input")
    write_program(sysroot, "/usr/bin/tegrastats", PROGRAM.format(line=XAVIER))
    return sysroot


def test_no_program_is_no_jetson(machine: Machine) -> None:
    probe = Tegrastats().probe(machine("xeon"))
    assert probe.availability is Availability.ABSENT
    assert not Tegrastats().channels(machine("xeon"))


def test_where_the_files_can_be_read_the_program_is_not_even_run(machine: Machine) -> None:
    sysroot = machine("xavier-jp4")
    write_program(sysroot, "/usr/bin/tegrastats", "open('ran', 'w')")
    probe = Tegrastats().probe(sysroot)
    assert probe.availability is Availability.ABSENT
    assert "ina3221" in probe.detail


def test_it_stands_in_where_the_files_are_roots(locked_xavier: Sysroot) -> None:
    probe = Tegrastats().probe(locked_xavier)
    assert probe.availability is Availability.AVAILABLE
    assert [rail.name for rail in probe.rails] == ["GPU", "CPU", "SOC", "CV", "VDDRQ", "SYS5V"]
    assert {rail.update_period_s for rail in probe.rails} == {0.1}
    assert {rail.name: rail.resolution for rail in probe.rails}["SYS5V"] < 0.2
    assert all(rail.offset == 2 * rail.resolution > 0 for rail in probe.rails)
    assert tuple(channel.rail for channel in Tegrastats().channels(locked_xavier)) == probe.rails


def test_the_boards_own_total_holds_over_the_same_names(locked_xavier: Sysroot) -> None:
    formula = choose_total(probe_all(locked_xavier), find_board("jetson-agx-xavier"))
    assert formula is not None
    assert formula.rails == tuple(f"tegrastats:{name}" for name in ("GPU", "CPU", "SOC", "CV", "VDDRQ", "SYS5V"))


def test_a_recording_of_two_rails_runs_one_program(locked_xavier: Sysroot) -> None:
    with Recorder(locked_xavier, ["tegrastats:GPU", "tegrastats:SYS5V"], 0.01) as recorder:
        deadline = time.monotonic() + PATIENCE_S
        while min(len(samples.value) for samples in recorder._poller.samples) < 4:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        gpu, sys5v = recorder.stop()
    assert set(gpu.value) == {1.155}
    assert set(sys5v.value) == {2.692}
    shared = set(gpu.time_ns) & set(sys5v.time_ns)
    assert len(shared) >= 3, "rails of one line have one stamp"


def test_a_simulated_board_gives_simulated_rails(locked_xavier: Sysroot) -> None:
    (locked_xavier.base / SIMULATION_MARKER).write_text("{}")
    assert {rail.provenance for rail in Tegrastats().probe(locked_xavier).rails} == {Provenance.SIMULATED}


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("import sys; sys.exit('tegrastats: cannot open nvmap')", "cannot open nvmap"),
        ("import time\nwhile True: print('RAM 1/2MB', flush=True); time.sleep(0.02)", "prints no rails"),
        ("import time; time.sleep(1000)", "no reading"),
    ],
)
def test_a_program_without_rails_is_broken_with_its_own_words(
    locked_xavier: Sysroot, source: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_PATIENCE_S", 0.5)
    write_program(locked_xavier, "/usr/bin/tegrastats", source)
    probe = Tegrastats().probe(locked_xavier)
    assert probe.availability is Availability.BROKEN
    assert words in probe.detail
    assert "sudo" in probe.remedy
    assert not Tegrastats().channels(locked_xavier)


def test_a_program_that_cannot_be_started(locked_xavier: Sysroot) -> None:
    locked_xavier.path("/usr/bin/tegrastats").write_text("#!/nowhere/python\n")
    probe = Tegrastats().probe(locked_xavier)
    assert probe.availability is Availability.BROKEN
    assert "No such file" in probe.detail
