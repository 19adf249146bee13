"""Servers and a laptop, simulated: what is found on each, and that measured energy is the true one."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from powerlab.boards.registry import BOARDS, detect
from powerlab.boards.simulator import create_tree, layout, simulated_board
from powerlab.boards.simulator.load import Load
from powerlab.domain.power import Availability, RailQuantity, TotalFormula
from powerlab.domain.quantity import Provenance
from powerlab.domain.run import Verdict
from powerlab.measure.energy.rail import covers, rail_energy
from powerlab.measure.energy.total import total_energy
from powerlab.measure.validity import Evidence, judge
from powerlab.power.registry import probe_all
from powerlab.power.sampling.recorder import Recorder
from powerlab.power.total import choose_total
from powerlab.sysroot import Sysroot
from simulation_truth import true_energy, wait_until

CORES = [f"hwmon:Core Energy {core:03d}" for core in range(80)]
RAILS = {
    "ampere-altra": CORES,
    "nvidia-grace": [f"hwmon:{meter} Power Socket 0" for meter in ("Module", "Grace", "CPU", "SysIO")],
    "apm-xgene": ["hwmon:CPU power", "hwmon:IO power"],
    "intel-xeon": ["rapl:package-0", "rapl:package-0/dram", "rapl:package-1", "rapl:package-1/dram"],
    "laptop": [
        *(f"rapl:{zone}" for zone in ("package-0", "package-0/core", "package-0/uncore", "package-0/dram", "psys")),
        "battery:BAT0",
    ],
}
TOTALS = {
    "ampere-altra": CORES,
    "nvidia-grace": ["hwmon:Module Power Socket 0"],
    "apm-xgene": RAILS["apm-xgene"],
    "intel-xeon": RAILS["intel-xeon"],
    "laptop": ["rapl:package-0", "rapl:package-0/dram"],
}


def rail_energy_j(board: Sysroot, rail: str) -> float:
    found = re.search(rf"^\s*(\d+) {re.escape(rail)}$", board.read(layout.RAIL_ENERGY_FILE), re.MULTILINE)
    assert found is not None
    return int(found[1]) * 1e-6


@pytest.fixture
def written(tmp_path: Path, request: pytest.FixtureRequest) -> Sysroot:
    create_tree(request.param, tmp_path / "board")
    return Sysroot(tmp_path / "board")


@pytest.mark.parametrize("written", sorted(RAILS), indirect=True)
def test_probes_find_the_rails_of_the_board_and_nothing_else(written: Sysroot, request: pytest.FixtureRequest) -> None:
    name = request.node.callspec.params["written"]
    assert detect(written).name == name
    probes = probe_all(written)
    servers = ["ipmi:system"] if name != "laptop" else []
    assert [rail.key for probe in probes for rail in probe.rails] == RAILS[name] + servers
    assert {rail.provenance for probe in probes for rail in probe.rails} == {Provenance.SIMULATED}
    assert {probe.availability for probe in probes} == {Availability.AVAILABLE, Availability.ABSENT}
    total = choose_total(probes, detect(written))
    assert total is not None
    assert list(total.rails) == TOTALS[name]
    assert not total.proposed
    assert total.scope == BOARDS[name].total.scope  # type: ignore[union-attr]


@pytest.mark.parametrize("written", sorted(RAILS), indirect=True)
def test_no_tree_shows_0_w_before_the_simulator_runs(written: Sysroot) -> None:
    hwmon = "/sys/class/hwmon/hwmon*"
    readings = [f"{hwmon}/power*_input", f"{hwmon}/device/power*_average", f"{hwmon}/energy*_input"]
    for path in (path for pattern in readings for path in written.glob(pattern)):
        assert int(written.read(path)) > 0
    for path in written.glob("/sys/class/powercap/intel-rapl*:*/energy_uj"):
        assert 0 < int(written.read(path)) <= int(written.read(f"{path.rpartition('/')[0]}/max_energy_range_uj"))


@pytest.mark.parametrize("written", ["ampere-altra", "apm-xgene"], indirect=True)
def test_a_real_machine_s_chip_is_enough_to_know_the_board(written: Sysroot) -> None:
    """The firmware's names differ from maker to maker; the sensor chip is the processor's own."""
    for path in ("sys/class/dmi", "proc/device-tree"):
        if (written.base / path).exists():
            (written.base / path).rename(written.base / "gone")
    assert detect(written).name in {"ampere-altra", "apm-xgene"}


@pytest.mark.parametrize("name", sorted(RAILS))
def test_measured_energy_is_the_true_one_within_its_stated_uncertainty(name: str) -> None:
    with simulated_board(name) as board, Load(board) as load:
        total = choose_total(probe_all(board), detect(board))
        assert total is not None
        with Recorder(board, total.rails, period_s=0.01) as recorder:
            wait_until(lambda: recorder.rounds >= 20)
            start_ns, start_j = true_energy(board)
            load.publish(4)
            wait_until(lambda: true_energy(board)[0] > start_ns + 600_000_000)
            load.publish(16)
            wait_until(lambda: true_energy(board)[0] > start_ns + 1_500_000_000)
            end_ns, end_j = true_energy(board)
            rounds = recorder.rounds
            wait_until(lambda: recorder.rounds >= rounds + 20)
            traces = recorder.stop()
        measured = total_energy(total, traces, (start_ns, end_ns))
        assert measured.provenance is Provenance.SIMULATED
        assert measured.energy_j == pytest.approx(end_j - start_j, abs=measured.half_width_j)
        assert measured.half_width_j < 0.4 * measured.energy_j
        assert sum(recorder.failed_reads.values()) == 0


def test_energy_is_right_across_a_wrap_of_one_of_two_packages() -> None:
    """The first package's counter starts again a second or two into the load; the total must not notice."""
    counter = "/sys/class/powercap/intel-rapl:0/energy_uj"
    with simulated_board("intel-xeon") as board, Load(board) as load:
        load.publish(32)
        before_uj = int(board.read(counter))
        with Recorder(board, TOTALS["intel-xeon"], period_s=0.005) as recorder:
            wait_until(lambda: recorder.rounds >= 10)
            start_ns, _ = true_energy(board)
            start_j = rail_energy_j(board, "package-0")
            wait_until(lambda: int(board.read(counter)) < before_uj)
            wait_until(lambda: true_energy(board)[0] > start_ns + 1_000_000_000)
            end_ns, end_j = true_energy(board)[0], rail_energy_j(board, "package-0")
            rounds = recorder.rounds
            wait_until(lambda: recorder.rounds >= rounds + 10)
            trace = recorder.stop()[0]
    assert trace.rail.key == "rapl:package-0"
    assert recorder.failed_reads["rapl:package-0"] == 0
    # A few ticks lie between reading the two files; the tolerance is half the stated gain error.
    assert rail_energy(trace, start_ns, end_ns).energy_j == pytest.approx(end_j - start_j, rel=0.025)


def test_the_battery_sees_the_whole_machine_and_plugging_in_voids_the_run() -> None:
    rail_key = "battery:BAT0"
    with simulated_board("laptop") as board, Load(board) as load:
        load.publish(4)
        (rail,) = (rail for probe in probe_all(board) for rail in probe.rails if rail.key == rail_key)
        assert rail.quantity is RailQuantity.POWER
        with Recorder(board, [rail_key], period_s=0.01) as recorder:
            start_ns, _ = true_energy(board)
            wait_until(lambda: true_energy(board)[0] > start_ns + 2_500_000_000)
            plugged_ns = time.monotonic_ns()
            board.path("/sys/class/power_supply/AC/online").write_text("1\n")
            wait_until(lambda: board.read("/sys/class/power_supply/BAT0/status") == "Charging")
            wait_until(lambda: true_energy(board)[0] > plugged_ns + 2_000_000_000)
            end_ns = time.monotonic_ns()
            (trace,) = recorder.stop()
        assert recorder.failed_reads[rail_key] > 0
        # One reading may fall between the plug and the firmware's noticing it.
        assert int(trace.time_ns[-1]) < plugged_ns + 500_000_000
        assert trace.value.max() < 38.0, "what charges the battery is not the machine's power"
        assert not covers(trace, start_ns, end_ns)
        total = choose_total([probe for probe in probe_all(board) if probe.source == "battery"], None)
        assert total is None
    evidence = Evidence(
        window_ns=(start_ns, end_ns),
        inference_count=1000,
        total=TotalFormula(rails=(rail_key,), scope="the machine"),
        traces=(trace,),
        sample_period_s=0.01,
    )
    assert Verdict.VOID in {finding.verdict for finding in judge(evidence)}
