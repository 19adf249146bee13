"""IPMI's DCMI power reading: what the programs print, and the programs run as a source."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from device_programs import write_program
from powerlab.domain.power import Availability, SourceProbe
from powerlab.domain.quantity import Provenance
from powerlab.power.base import PolledChannel
from powerlab.power.registry import probe_all
from powerlab.power.sampling.recorder import Recorder
from powerlab.power.sources import ipmi
from powerlab.power.sources.ipmi import Ipmi, parse_reading
from powerlab.power.total import choose_total
from powerlab.sysroot import SIMULATION_MARKER, Sysroot

IPMITOOL = """
    Instantaneous power reading:                   123 Watts
    Minimum during sampling period:                  6 Watts
    Maximum during sampling period:                304 Watts
    Average power reading over sample period:       49 Watts
    IPMI timestamp:                           Thu Feb 15 08:36:01 2024
    Sampling period:                          00000001 Seconds.
    Power reading state is:                   activated


"""
RECENT_IPMITOOL = IPMITOOL.replace("Thu Feb 15 08:36:01 2024\n", "02/15/24 08:36:01 UTC")
FREEIPMI = """\
Current Power                        : 164 Watts
Minimum Power over sampling duration : 48 watts
Maximum Power over sampling duration : 361 watts
Average Power over sampling duration : 157 watts
Time Stamp                           : 12/29/2023 - 08:58:00
Statistics reporting time period     : 1473439000 milliseconds
Power Measurement                    : Active
"""


@pytest.mark.parametrize(
    ("text", "power_w"),
    [(IPMITOOL, 123.0), (RECENT_IPMITOOL, 123.0), (FREEIPMI, 164.0), (IPMITOOL.replace("\n", "\r\n"), 123.0)],
)
def test_readings_of_both_programs(text: str, power_w: float) -> None:
    reading = parse_reading(text)
    assert (reading.power_w, reading.active) == (power_w, True)


def test_0_watts_is_unknown_and_never_0_watts() -> None:
    assert parse_reading(IPMITOOL.replace("123", "0")).power_w is None


@pytest.mark.parametrize(
    "text",
    [IPMITOOL.replace(" activated", " deactivated"), FREEIPMI.replace("Active", "Not Available")],
)
def test_a_controller_that_does_not_measure(text: str) -> None:
    assert not parse_reading(text).active


@pytest.mark.parametrize(
    "text",
    ["", "DCMI request failed because: Invalid command (c1)", "Minimum during sampling period: 6 Watts", "123 Watts"],
)
def test_other_text_is_no_reading(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_reading(text)


@given(st.text(), st.sampled_from([IPMITOOL, FREEIPMI]), st.integers(0, 400))
def test_any_text_is_a_reading_or_none(text: str, answer: str, position: int) -> None:
    for candidate in (text, answer[:position] + text + answer[position:], answer.replace("Watts", text)):
        try:
            reading = parse_reading(candidate)
        except ValueError:
            continue
        assert reading.power_w is None or 0 < reading.power_w < 1e6


def server(base: Path, answer: str = IPMITOOL, program: str = "/usr/bin/ipmitool", status: int = 0) -> Sysroot:
    """A server with a controller, whose program prints an answer."""
    sysroot = Sysroot(base)
    (base / "dev").mkdir(exist_ok=True)
    (base / "dev/ipmi0").touch()
    write_program(sysroot, program, f"import sys\nsys.stdout.write({answer!r})\nsys.exit({status})\n")
    return sysroot


def state(probe: SourceProbe, wanted: Availability, *words: str) -> None:
    assert probe.availability is wanted, probe
    assert not probe.rails
    for word in words:
        assert word in f"{probe.detail} {probe.remedy}"


def test_a_controller_is_one_rail_of_whole_watts(tmp_path: Path) -> None:
    sysroot = server(tmp_path)
    probe = Ipmi().probe(sysroot)
    assert probe.availability is Availability.AVAILABLE
    (rail,) = probe.rails
    assert (rail.key, rail.resolution, rail.update_period_s) == ("ipmi:system", 1.0, 1.0)
    assert rail.provenance is Provenance.MEASURED
    (channel,) = Ipmi().channels(sysroot)
    assert channel.rail == rail
    assert isinstance(channel, PolledChannel)
    assert channel.read() == 123.0


@pytest.mark.parametrize(
    ("program", "answer", "power_w"),
    [("/usr/sbin/ipmitool", IPMITOOL, 123.0), ("/usr/sbin/ipmi-dcmi", FREEIPMI, 164.0)],
)
def test_either_program_will_do(tmp_path: Path, program: str, answer: str, power_w: float) -> None:
    (channel,) = Ipmi().channels(server(tmp_path, answer, program))
    assert isinstance(channel, PolledChannel)
    assert channel.read() == power_w


def test_each_program_gets_its_own_arguments(tmp_path: Path) -> None:
    sysroot = server(tmp_path)
    for name, wanted in (("ipmitool", "dcmi power reading"), ("ipmi-dcmi", "--get-system-power-statistics")):
        for other in ("ipmitool", "ipmi-dcmi"):
            sysroot.path(f"/usr/bin/{other}").unlink(missing_ok=True)
        source = f"import sys\nassert ' '.join(sys.argv[1:]) == {wanted!r}\nsys.stdout.write({IPMITOOL!r})"
        write_program(sysroot, f"/usr/bin/{name}", source)
        assert Ipmi().probe(sysroot).availability is Availability.AVAILABLE


def test_it_is_the_total_of_a_server_without_other_sensors(tmp_path: Path) -> None:
    formula = choose_total(probe_all(server(tmp_path)), None)
    assert formula is not None
    assert formula.rails == ("ipmi:system",)
    assert formula.proposed


def test_a_simulated_server_is_simulated(tmp_path: Path) -> None:
    sysroot = server(tmp_path)
    (tmp_path / SIMULATION_MARKER).write_text("{}")
    assert [rail.provenance for rail in Ipmi().probe(sysroot).rails] == [Provenance.SIMULATED]


def test_a_recording_says_what_a_read_costs(tmp_path: Path) -> None:
    with Recorder(server(tmp_path), ["ipmi:system"], 0.01) as recorder:
        while not recorder._poller.samples[0].value:
            time.sleep(0.01)
        (trace,) = recorder.stop()
    assert set(trace.value) == {123.0}
    assert trace.read_cost_ns > 0


def test_no_controller_has_a_remedy_on_servers_alone(tmp_path: Path) -> None:
    probe = Ipmi().probe(Sysroot(tmp_path))
    state(probe, Availability.ABSENT, "/dev/ipmi0")
    assert not probe.remedy
    (tmp_path / "sys/class/dmi/id").mkdir(parents=True)
    (tmp_path / "sys/class/dmi/id/chassis_type").write_text("23\n")
    state(Ipmi().probe(Sysroot(tmp_path)), Availability.ABSENT, "modprobe ipmi_devintf")
    assert not Ipmi().channels(Sysroot(tmp_path))


def test_no_program(tmp_path: Path) -> None:
    sysroot = server(tmp_path)
    sysroot.path("/usr/bin/ipmitool").unlink()
    state(Ipmi().probe(sysroot), Availability.ABSENT, "ipmitool", "apt install")
    assert not Ipmi().channels(sysroot)


def test_a_device_this_user_may_not_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sysroot = server(tmp_path)
    honest = os.access
    monkeypatch.setattr(
        os, "access", lambda path, mode, **more: not str(path).endswith("ipmi0") and honest(path, mode, **more)
    )
    state(Ipmi().probe(sysroot), Availability.DENIED, "sudo", "udev")


def test_a_program_that_is_refused(tmp_path: Path) -> None:
    words = "Could not open device at /dev/ipmi0 or /dev/ipmi/0 or /dev/ipmidev/0: Permission denied"
    state(Ipmi().probe(server(tmp_path, words, status=1)), Availability.DENIED, "Permission denied", "udev")


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (IPMITOOL.replace(" activated", " deactivated"), ("deactivated", "dcmi power activate")),
        (IPMITOOL.replace("123", "0"), ("0 W", "measures nothing")),
        ("DCMI request failed because: Invalid command (c1)\n", ("Invalid command", "not every controller")),
        ("", ("no answer",)),
    ],
)
def test_a_controller_that_gives_no_power_is_broken_and_says_why(
    tmp_path: Path, answer: str, words: tuple[str, ...]
) -> None:
    sysroot = server(tmp_path, answer)
    state(Ipmi().probe(sysroot), Availability.BROKEN, *words)
    (channel,) = Ipmi().channels(sysroot)
    assert isinstance(channel, PolledChannel)
    with pytest.raises(OSError, match=r"."):
        channel.read()


def _hang(sysroot: Sysroot) -> None:
    write_program(sysroot, "/usr/bin/ipmitool", "import time; time.sleep(1000)")


def _no_interpreter(sysroot: Sysroot) -> None:
    sysroot.path("/usr/bin/ipmitool").write_text("#!/nowhere/sh\n")


@pytest.mark.parametrize(("spoil", "words"), [(_hang, "did not end"), (_no_interpreter, "No such file")])
def test_a_program_that_hangs_or_does_not_start(
    tmp_path: Path, spoil: Callable[[Sysroot], None], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ipmi, "_TIMEOUT_S", 0.2)
    sysroot = server(tmp_path)
    spoil(sysroot)
    state(Ipmi().probe(sysroot), Availability.BROKEN, words)
