"""jtop: the real client and the real service of the package jetson-stats, which ``jtop_server.py`` starts."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.domain.power import Availability
from powerlab.domain.quantity import Provenance
from powerlab.power.sampling.recorder import Recorder
from powerlab.power.sources.jtop.client import main, rails_of
from powerlab.power.sources.jtop.source import Jtop, Told
from powerlab.sysroot import SIMULATION_MARKER, Sysroot
from requires import missing

PATIENCE_S = 60.0
SERVER = Path(__file__).parents[2] / "support" / "jtop_server.py"
CHIPS = {
    "1-0040": {"GPU": (19248, 60), "CPU": (19248, 20), "SOC": (19248, 130)},
    "1-0041": {"CV": (19248, 0), "VDDRQ": (19248, 10), "SYS5V": (19248, 140)},
}
"""An idle AGX Xavier, from published readings: mV and mA of each rail."""


@pytest.fixture(scope="module")
def board() -> Iterator[Path]:
    """The I2C devices of a Xavier as JetPack 5 shows them; a short path, for a socket's may have 107 bytes."""
    if importlib.util.find_spec("jtop") is None:
        missing("the Python package jetson-stats is not installed (pip install 'powerlab[jtop]')")
    base = Path(tempfile.mkdtemp(prefix="jtop", dir="/tmp"))
    (base / "run").mkdir()
    for number, (address, rails) in enumerate(CHIPS.items(), start=3):
        device = base / "sys/bus/i2c/devices" / address
        monitor = device / "hwmon" / f"hwmon{number}"
        monitor.mkdir(parents=True)
        (device / "name").write_text("ina3221\n")
        for index, (name, (millivolts, milliamps)) in enumerate(rails.items(), start=1):
            (monitor / f"in{index}_label").write_text(f"{name}\n")
            (monitor / f"in{index}_input").write_text(f"{millivolts}\n")
            (monitor / f"curr{index}_input").write_text(f"{milliamps}\n")
    yield base
    shutil.rmtree(base)


@contextmanager
def serving(base: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Run the service until the end of the block."""
    log = base / "service.log"
    with log.open("w") as complaints:
        process = subprocess.Popen(
            [sys.executable, str(SERVER), str(base), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=complaints,
            text=True,
        )
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "serving\n", log.read_text()
            yield process
        finally:
            process.communicate(timeout=PATIENCE_S)
            (base / "run/jtop.sock").unlink(missing_ok=True)


@pytest.fixture(scope="module")
def service(board: Path) -> Iterator[Sysroot]:
    with serving(board):
        yield Sysroot(board)


def true_w() -> dict[str, float]:
    return {
        name: millivolts * milliamps * 1e-6
        for rails in CHIPS.values()
        for name, (millivolts, milliamps) in rails.items()
    }


def test_the_real_client_reads_the_real_service(service: Sysroot) -> None:
    probe = Jtop().probe(service)
    assert probe.availability is Availability.AVAILABLE, probe
    assert {rail.name for rail in probe.rails} == set(true_w())
    assert {rail.provenance for rail in probe.rails} == {Provenance.MEASURED}
    # A 40 µV step over 2 mΩ is 20 mA.
    assert [rail.resolution for rail in probe.rails] == pytest.approx([0.020 * 19.248] * 6)
    assert {rail.update_period_s for rail in probe.rails} == {0.1}


def test_a_recording_has_the_present_power_of_each_rail(service: Sysroot) -> None:
    keys = [f"jtop:{name}" for name in true_w()]
    with Recorder(service, keys, 0.01) as recorder:
        deadline = time.monotonic() + PATIENCE_S
        while min(len(samples.value) for samples in recorder._poller.samples) < 3:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        traces = recorder.stop()
    for trace in traces:
        # The service cuts to whole milliwatts.
        assert trace.value == pytest.approx(true_w()[trace.rail.name], abs=1.001e-3)
        assert set(trace.time_ns) == set(traces[0].time_ns) or len(trace.time_ns) >= 3


def test_power_that_changes_is_the_new_power_and_not_jtops_average(service: Sysroot) -> None:
    current = service.path("/sys/bus/i2c/devices/1-0040/hwmon/hwmon3/curr1_input")
    with Recorder(service, ["jtop:GPU"], 0.01) as recorder:
        current.write_text("1060\n")
        deadline = time.monotonic() + PATIENCE_S
        while 20.402 not in (values := recorder._poller.samples[0].value):
            assert time.monotonic() < deadline, values
            time.sleep(0.01)
        (trace,) = recorder.stop()
    current.write_text("60\n")
    assert set(trace.value) <= {1.154, 20.402}, "an average would lie between"


def test_where_the_files_can_be_read_it_is_not_needed(
    service: Sysroot, monkeypatch: pytest.MonkeyPatch, machine: Callable[[str], Sysroot]
) -> None:
    sysroot = machine("xavier-jp4")
    sysroot.path("/run").mkdir()
    sysroot.path("/run/jtop.sock").symlink_to(service.path("/run/jtop.sock"))
    probe = Jtop().probe(sysroot)
    assert probe.availability is Availability.ABSENT
    assert "ina3221" in probe.detail
    assert len(Jtop().channels(sysroot)) == 6, "it can still be compared with the files"


def test_a_simulated_board_gives_simulated_rails(service: Sysroot) -> None:
    marker = service.path(SIMULATION_MARKER)
    marker.write_text("{}")
    try:
        assert {rail.provenance for rail in Jtop().probe(service).rails} == {Provenance.SIMULATED}
    finally:
        marker.unlink()


def test_a_service_of_another_version_has_a_remedy(board: Path) -> None:
    second = Path(tempfile.mkdtemp(prefix="jtop", dir="/tmp"))
    try:
        shutil.copytree(board / "sys", second / "sys")
        (second / "run").mkdir()
        with serving(second, "4.2.12"):
            probe = Jtop().probe(Sysroot(second))
    finally:
        shutil.rmtree(second)
    assert probe.availability is Availability.BROKEN
    assert "4.2.12" in probe.detail
    assert "jetson-stats==MAJOR.MINOR.*" in probe.remedy
    assert "major and minor" in probe.remedy


def test_a_service_that_dies_is_a_gap(board: Path) -> None:
    second = Path(tempfile.mkdtemp(prefix="jtop", dir="/tmp"))
    try:
        shutil.copytree(board / "sys", second / "sys")
        (second / "run").mkdir()
        with serving(second) as process, Recorder(Sysroot(second), ["jtop:CPU"], 0.01) as recorder:
            process.communicate(timeout=PATIENCE_S)
            deadline = time.monotonic() + PATIENCE_S
            while recorder._poller.samples[0].failed_reads < 3:
                assert time.monotonic() < deadline
                time.sleep(0.01)
            (trace,) = recorder.stop()
    finally:
        shutil.rmtree(second)
    assert len(set(trace.time_ns)) == len(trace.time_ns)


def test_without_the_service_it_is_absent_and_nothing_is_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", pytest.fail)
    probe = Jtop().probe(Sysroot(tmp_path))
    assert probe.availability is Availability.ABSENT
    assert "/run/jtop.sock" in probe.detail
    assert not Jtop().channels(Sysroot(tmp_path))


def test_powerlab_itself_imports_nothing_of_it() -> None:
    source = "import sys, powerlab.power.registry, powerlab.power.cross_check; sys.exit('jtop' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", source], check=False).returncode == 0


def test_without_the_package_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run/jtop.sock").touch()
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    probe = Jtop().probe(Sysroot(tmp_path))
    assert probe.availability is Availability.ABSENT
    assert "powerlab[jtop]" in probe.remedy
    assert "major.minor" in probe.remedy


def test_a_socket_nobody_serves_is_broken(tmp_path: Path, board: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run/jtop.sock").touch()
    probe = Jtop().probe(Sysroot(tmp_path))
    assert probe.availability is Availability.BROKEN
    assert "not active" in probe.detail
    assert "systemctl" in probe.remedy


@pytest.mark.parametrize(
    ("error", "wanted", "words"),
    [
        ("I can't access jtop.service. Please logout or reboot this board.", Availability.DENIED, "usermod -aG jtop"),
        ("Authentication with jetson-stats server failed", Availability.BROKEN, "systemctl status jtop"),
    ],
)
def test_what_the_client_says_has_a_remedy(error: str, wanted: Availability, words: str) -> None:
    probe = Jtop()._refused(error)
    assert probe.availability is wanted
    assert words in probe.remedy


def test_the_rail_that_feeds_the_others_is_taken_back_from_the_total() -> None:
    power = {
        "rail": {"VDD_SOC": {"power": 1428, "avg": 1400, "volt": 5008, "curr": 285, "online": True}, "EMPTY": {}},
        "tot": {"name": "VDD_IN", "power": 4761, "avg": 4777, "volt": 5008, "curr": 950},
    }
    assert rails_of(power) == {
        "VDD_SOC": {"power_mw": 1428, "volt_mv": 5008, "curr_ma": 285},
        "VDD_IN": {"power_mw": 4761, "volt_mv": 5008, "curr_ma": 950},
    }


def test_jtops_own_sum_is_no_rail() -> None:
    assert rails_of({"rail": {"CPU": {"power": 385}}, "tot": {"power": 6928, "avg": 6900}}) == {
        "CPU": {"power_mw": 385}
    }
    assert rails_of({}) == {}


def test_the_client_without_the_package_says_so(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "jtop", None)
    assert main(["/run/jtop.sock", "0.1"]) == 1
    assert "jetson-stats is not installed" in json.loads(capsys.readouterr().out)["error"]


def test_lines_of_the_client() -> None:
    told = Told()
    with pytest.raises(ValueError, match="no rails"):
        told.parse_line('{"version": "7.2.2", "interval_s": 0.5}')
    assert told.interval_s == 0.5
    assert told.parse_line('{"rails": {"CPU": {"power_mw": 385, "volt_mv": 19248}}}') == {"CPU": pytest.approx(0.385)}
    with pytest.raises(ValueError, match="gone"):
        told.parse_line('{"error": "gone"}')
    assert told.error == "gone"


@given(
    st.text()
    | st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["rails", "error", "power_mw", "CPU"]), inner),
    ).map(json.dumps)
)
def test_any_line_is_rails_or_none(text: str) -> None:
    told = Told()
    try:
        found: Mapping[str, float] = told.parse_line(text)
    except ValueError:
        return
    assert found
    assert all(isinstance(power_w, float) for power_w in found.values())
