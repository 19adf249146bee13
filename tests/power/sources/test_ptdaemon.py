"""The client of SPEC's PTDaemon, against a server that keeps to the published conversation."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.domain.power import Availability, SourceProbe
from powerlab.power.base import PolledChannel
from powerlab.power.sampling.poller import Poller
from powerlab.power.sources.meter import Meter
from powerlab.power.sources.meter.ptdaemon import parse_ranges, parse_sample
from powerlab.sysroot import Sysroot
from ptdaemon_server import WATTS, PtdServer

PATIENCE_S = 20.0
SAMPLE = "Time,12-23-2020 10:26:08.757,Watts,23.370000,Volts,228.810000,Amps,0.202450,PF,0.504500,Mark,ranging-workload"


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[PtdServer]:
    monkeypatch.delenv("POWERLAB_METER", raising=False)
    made = PtdServer()
    yield made
    made.kill()


@pytest.fixture
def sysroot(tmp_path: Path, server: PtdServer) -> Callable[..., Sysroot]:
    def configure(**more: float) -> Sysroot:
        settings = {"resolution_w": 0.01, "relative_error": 0.001, "update_period_s": 0.02, **more}
        file = tmp_path / "etc/powerlab/meter.toml"
        file.parent.mkdir(parents=True, exist_ok=True)
        lines = [f'address = "ptd://127.0.0.1:{server.port}"', 'covers = "the device at its plug"']
        file.write_text("\n".join([*lines, *(f"{key} = {value}" for key, value in settings.items())]))
        return Sysroot(tmp_path)

    return configure


def record(sysroot: Sysroot, enough: Callable[[Poller], object]) -> Poller:
    (channel,) = Meter().channels(sysroot)
    assert isinstance(channel, PolledChannel)
    poller = Poller([channel], 0.01)
    poller.start()
    try:
        until(lambda: enough(poller))
    finally:
        poller.stop()
    return poller


def five(poller: Poller) -> bool:
    return len(poller.samples[0].value) >= 5


def broken(probe: SourceProbe) -> str:
    assert probe.availability is Availability.BROKEN, probe
    assert probe.remedy
    return probe.detail


def test_a_published_sample_is_read() -> None:
    assert parse_sample(SAMPLE) == 23.37


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Watts,23.37",
        "Time,12-23-2020 10:26:08.757,Temp,29.687500,Humidity,0.000000,Mark,notset",
        "Time,12-23-2020 10:26:08.757,Watts,-1.000000,Volts,-1.000000",
        "Time,12-23-2020 10:26:08.757,Watts",
        "Time,12-23-2020 10:26:08.757,Watts,nan,Volts,1",
        "Time,Watts,5",
    ],
)
def test_what_is_no_power_is_none(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_sample(text)


@given(st.text(), st.text())
def test_any_sample_is_a_power_or_no_sample(text: str, number: str) -> None:
    for candidate in (text, SAMPLE.replace("23.370000", number), SAMPLE.replace("Watts", text)):
        try:
            power_w = parse_sample(candidate)
        except ValueError:
            continue
        assert math.isfinite(power_w)
        assert power_w >= 0


@pytest.mark.parametrize(
    ("text", "ranges"),
    [
        ("Ranges,1,-1.000000,0,300.000000", ("Auto", "300.000000")),
        ("Ranges,0,0.500000,0,300.000000", ("0.500000", "300.000000")),
        ("Ranges,-1,-1.0,-1,-1.0", ("Auto", "Auto")),
        ("Ranges,0,-1,0,-1", ("Auto", "Auto")),
    ],
)
def test_ranges(text: str, ranges: tuple[str, str]) -> None:
    assert parse_ranges(text) == ranges


@given(st.text())
def test_any_ranges_are_two_that_can_be_set_or_none(text: str) -> None:
    for candidate in (text, f"Ranges,{text}", f"Ranges,0,{text},0,{text}"):
        try:
            found = parse_ranges(candidate)
        except ValueError:
            continue
        assert all(one == "Auto" or float(one) > 0 for one in found)


def test_the_conversation(server: PtdServer, sysroot: Callable[..., Sysroot]) -> None:
    poller = record(sysroot(), five)
    assert server.commands[:3] == ["Hello", "Identify", "Go,20,0,powerlab"]
    assert server.commands[-1] == "Stop"
    assert set(server.commands[3:-1]) == {"RL"}
    assert not server.measuring
    assert set(poller.samples[0].value) <= set(WATTS)
    assert poller.samples[0].failed_reads == 0
    stamps = poller.samples[0].time_ns
    assert stamps == sorted(set(stamps))


def test_the_probe_awaits_a_sample_and_stops(server: PtdServer, sysroot: Callable[..., Sysroot]) -> None:
    probe = Meter().probe(sysroot())
    assert probe.availability is Availability.AVAILABLE
    assert "the device at its plug" in probe.detail
    until(lambda: server.commands[-1] == "Stop")


@pytest.mark.parametrize("reads", ["RL,*,*", "DC-RL"])
def test_analysers_of_several_channels_and_of_direct_current(
    server: PtdServer, sysroot: Callable[..., Sysroot], reads: str
) -> None:
    server.reads = reads
    poller = record(sysroot(), five)
    assert set(poller.samples[0].value) <= set(WATTS), "the first of several channels is their sum"


def test_ranges_are_set_and_put_back(server: PtdServer, sysroot: Callable[..., Sysroot]) -> None:
    during: list[dict[str, str]] = []
    record(
        sysroot(current_range_a=0.5, voltage_range_v=150),
        lambda poller: during.append(dict(server.ranges)) or five(poller),
    )
    assert during[-1] == {"A": "0.5", "V": "150"}
    assert server.ranges == {"A": "Auto", "V": "300.000000"}
    assert server.commands.index("RR") < server.commands.index("SR,A,0.5")


def test_without_ranges_none_is_touched(server: PtdServer, sysroot: Callable[..., Sysroot]) -> None:
    record(sysroot(), five)
    assert not [command for command in server.commands if command.startswith(("SR", "RR", "Reset"))]


def test_samples_that_say_unknown_are_no_readings(server: PtdServer, sysroot: Callable[..., Sysroot]) -> None:
    server.watts = (-1.0, 40.0)
    poller = record(sysroot(), lambda poller: len(poller.samples[0].value) >= 3)
    assert set(poller.samples[0].value) == {40.0}


def test_a_server_that_dies_ends_the_trace(server: PtdServer, sysroot: Callable[..., Sysroot]) -> None:
    def enough(poller: Poller) -> bool:
        if five(poller):
            server.kill()
        return poller.samples[0].failed_reads >= 3

    poller = record(sysroot(), enough)
    stamps = poller.samples[0].time_ns
    assert len(set(stamps)) == len(stamps)


def test_the_next_recording_finds_a_server_that_was_started_again(
    server: PtdServer, sysroot: Callable[..., Sysroot]
) -> None:
    root = sysroot()
    record(root, five)
    server.kill()
    again = PtdServer(server.port)
    try:
        assert five(record(root, five))
    finally:
        again.kill()


def test_something_else_on_the_port(server: PtdServer, sysroot: Callable[..., Sysroot]) -> None:
    server.greeting = "220 mail.example.org ESMTP"
    assert "220 mail.example.org" in broken(Meter().probe(sysroot()))


def test_a_thermometer(server: PtdServer, sysroot: Callable[..., Sysroot]) -> None:
    server.identity = "DummyTemp,5000,1,1,0,0,0,0,0,version=1.9.1-a2d19f26-20190717,OS=x,mode=temperature,0,0,1"
    assert "thermometer" in broken(Meter().probe(sysroot()))


def test_a_measurement_that_someone_else_has_begun_is_left_alone(
    server: PtdServer, sysroot: Callable[..., Sysroot]
) -> None:
    server.go = "Error: measurement already in progress"
    assert "already in progress" in broken(Meter().probe(sysroot()))
    assert "Stop" not in server.commands


def test_a_range_the_analyser_does_not_have(
    server: PtdServer, sysroot: Callable[..., Sysroot], monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = PtdServer._answers

    def refuse(self: PtdServer, command: str) -> list[str]:
        return ["Error in parameter"] if command.startswith("SR,V") else honest(self, command)

    monkeypatch.setattr(PtdServer, "_answers", refuse)
    assert "150" in broken(Meter().probe(sysroot(current_range_a=0.5, voltage_range_v=150)))
    assert server.ranges["A"] == "Auto", "what was set before the refusal is put back"


def test_a_silent_analyser(server: PtdServer, sysroot: Callable[..., Sysroot], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("powerlab.power.sources.meter._PATIENCE_S", 0.2)
    server.silent = True
    assert "no reading" in broken(Meter().probe(sysroot()))
    until(lambda: server.commands[-1] == "Stop")
