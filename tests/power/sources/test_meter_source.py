"""A wall meter as a source: a real TCP server, a real pseudo-terminal, and what happens when either goes away."""

from __future__ import annotations

import itertools
import os
import pty
import socket
import threading
import time
import tty
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from powerlab.domain.power import Availability, SourceProbe, TotalFormula
from powerlab.domain.quantity import Provenance
from powerlab.domain.run import Verdict
from powerlab.measure.validity import Evidence, judge
from powerlab.power.base import PolledChannel
from powerlab.power.registry import probe_all
from powerlab.power.sampling.poller import Poller
from powerlab.power.sampling.recorder import Recorder
from powerlab.power.sources import meter as meter_module
from powerlab.power.sources.meter import Meter
from powerlab.power.total import choose_total
from powerlab.sysroot import SIMULATION_MARKER, Sysroot

PATIENCE_S = 20.0


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


@pytest.fixture(autouse=True)
def _own_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("POWERLAB_METER", raising=False)


def configure(base: Path, address: str, **more: object) -> Sysroot:
    settings = {
        "address": address,
        "resolution_w": 0.01,
        "relative_error": 0.02,
        "update_period_s": 0.02,
        "covers": "the board at its DC input",
        **more,
    }
    file = base / "etc/powerlab/meter.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(f'{k} = "{v}"\n' if isinstance(v, str) else f"{k} = {v}\n" for k, v in settings.items()))
    return Sysroot(base)


class TcpMeter:
    """Sends a line every few milliseconds to whoever is connected, until it is killed."""

    def __init__(self, port: int = 0) -> None:
        self.line = "12.5 W"
        self._stopping = threading.Event()
        self._server = socket.create_server(("127.0.0.1", port))
        self.port = self._server.getsockname()[1]
        self._server.settimeout(0.02)
        self._connections: list[socket.socket] = []
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        while not self._stopping.is_set():
            with suppress(TimeoutError):
                self._connections.append(self._server.accept()[0])
            for connection in list(self._connections):
                try:
                    connection.sendall(f"{self.line}\n".encode())
                except OSError:
                    connection.close()
                    self._connections.remove(connection)

    def kill(self) -> None:
        self._stopping.set()
        self._thread.join()
        for connection in self._connections:
            connection.close()
        self._server.close()


@pytest.fixture
def tcp_meter() -> Iterator[TcpMeter]:
    made = TcpMeter()
    yield made
    made.kill()


class SerialMeter:
    """The other end of a serial line: a pseudo-terminal."""

    def __init__(self) -> None:
        self.master, slave = pty.openpty()
        tty.setraw(slave)
        self.path = os.ttyname(slave)
        self._slave = slave
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._send)
        self._thread.start()

    def _send(self) -> None:
        while not self._stopping.wait(0.01):
            os.write(self.master, b"V=230.0 V, P=41.5 W\r\n")

    def unplug(self) -> None:
        if not self._stopping.is_set():
            self._stopping.set()
            self._thread.join()
            os.close(self._slave)
            os.close(self.master)


@pytest.fixture
def serial_meter() -> Iterator[SerialMeter]:
    made = SerialMeter()
    yield made
    made.unplug()


def plug_in(base: Path, serial: SerialMeter) -> Sysroot:
    """Let the device's /dev/ttyUSB0 be the pseudo-terminal."""
    (base / "dev").mkdir(exist_ok=True)
    (base / "dev/ttyUSB0").symlink_to(serial.path)
    return configure(base, "serial:///dev/ttyUSB0?baud=115200")


def channel_of(sysroot: Sysroot) -> PolledChannel:
    (channel,) = Meter().channels(sysroot)
    assert isinstance(channel, PolledChannel)
    return channel


def available(probe: SourceProbe) -> bool:
    assert probe.availability is Availability.AVAILABLE, probe
    return True


def test_without_a_file_there_is_no_meter(tmp_path: Path) -> None:
    probe = Meter().probe(Sysroot(tmp_path))
    assert probe.availability is Availability.ABSENT
    assert "/etc/powerlab/meter.toml" in probe.detail
    assert not probe.remedy
    assert not Meter().channels(Sysroot(tmp_path))


def test_a_tcp_meter_is_a_rail_with_what_its_user_states(tmp_path: Path, tcp_meter: TcpMeter) -> None:
    sysroot = configure(tmp_path, f"tcp://127.0.0.1:{tcp_meter.port}")
    probe = Meter().probe(sysroot)
    assert available(probe)
    assert "which covers the board at its DC input" in probe.detail
    (rail,) = probe.rails
    assert rail.key == "meter:wall"
    assert (rail.resolution, rail.relative_error, rail.update_period_s) == (0.01, 0.02, 0.02)
    assert rail.provenance is Provenance.MEASURED
    assert channel_of(sysroot).rail == rail


def test_a_simulated_boards_meter_is_simulated(tmp_path: Path, tcp_meter: TcpMeter) -> None:
    sysroot = configure(tmp_path, f"tcp://127.0.0.1:{tcp_meter.port}")
    (tmp_path / SIMULATION_MARKER).write_text("{}")
    assert [rail.provenance for rail in Meter().probe(sysroot).rails] == [Provenance.SIMULATED]


def test_a_configured_meter_is_the_total_of_any_machine(tmp_path: Path, tcp_meter: TcpMeter) -> None:
    probes = probe_all(configure(tmp_path, f"tcp://127.0.0.1:{tcp_meter.port}"))
    formula = choose_total(probes, None)
    assert formula is not None
    assert formula.rails == ("meter:wall",)
    assert "the board at its DC input" in formula.scope
    assert not formula.proposed


def test_a_recording_has_the_meters_readings(tmp_path: Path, tcp_meter: TcpMeter) -> None:
    sysroot = configure(tmp_path, f"tcp://127.0.0.1:{tcp_meter.port}")
    with Recorder(sysroot, ["meter:wall"], 0.01) as recorder:
        until(lambda: len(recorder._poller.samples[0].value) >= 5)
        (trace,) = recorder.stop()
    assert set(trace.value) == {12.5}
    assert len(trace.time_ns) >= 5
    assert recorder.failed_reads == {"meter:wall": 0}


def test_a_serial_meter_is_read_by_its_field(tmp_path: Path, serial_meter: SerialMeter) -> None:
    sysroot = plug_in(tmp_path, serial_meter)
    assert available(Meter().probe(sysroot))
    with Recorder(sysroot, ["meter:wall"], 0.01) as recorder:
        until(lambda: len(recorder._poller.samples[0].value) >= 5)
        (trace,) = recorder.stop()
    assert set(trace.value) == {41.5}


def lose(sysroot: Sysroot, end: Callable[[], None]) -> Poller:
    """Record, let the meter go away, and return the stopped poller once readings have failed."""
    poller = Poller([channel_of(sysroot)], 0.01)
    poller.start()
    try:
        until(lambda: len(poller.samples[0].value) >= 3)
        end()
        until(lambda: poller.samples[0].failed_reads >= 3)
    finally:
        poller.stop()
    return poller


def test_a_killed_server_is_a_gap_and_never_a_stale_value(tmp_path: Path, tcp_meter: TcpMeter) -> None:
    ended_ns: list[int] = []

    def kill() -> None:
        tcp_meter.kill()
        ended_ns.append(time.monotonic_ns())

    poller = lose(configure(tmp_path, f"tcp://127.0.0.1:{tcp_meter.port}"), kill)
    # What was on its way when the server died may still arrive; nothing comes after it has been found dead.
    count = len(poller.samples[0].time_ns)
    assert len(set(poller.samples[0].time_ns)) == count
    assert sum(stamp > ended_ns[0] for stamp in poller.samples[0].time_ns) <= 1


def test_a_run_whose_meter_was_lost_is_void(tmp_path: Path, tcp_meter: TcpMeter) -> None:
    sysroot = configure(tmp_path, f"tcp://127.0.0.1:{tcp_meter.port}")
    total = TotalFormula(rails=("meter:wall",), scope="the device")
    start_ns = time.monotonic_ns()
    with Recorder(sysroot, total.rails, 0.01) as recorder:
        until(lambda: len(recorder._poller.samples[0].value) >= 5)
        tcp_meter.kill()
        until(lambda: recorder._poller.samples[0].failed_reads >= 3)
        traces = recorder.stop()
    start_ns = max(start_ns, int(traces[0].time_ns[0]))
    whole = Evidence(
        window_ns=(start_ns, int(traces[0].time_ns[-1])),
        inference_count=100,
        total=total,
        traces=traces,
        sample_period_s=0.01,
    )
    cut_short = replace(whole, window_ns=(start_ns, time.monotonic_ns()))
    assert not [finding for finding in judge(whole) if finding.rule == "missing-power"]
    (finding,) = (finding for finding in judge(cut_short) if finding.rule == "missing-power")
    assert finding.verdict is Verdict.VOID
    assert "do not span" in finding.detail


def test_an_unplugged_serial_line_is_a_gap(tmp_path: Path, serial_meter: SerialMeter) -> None:
    poller = lose(plug_in(tmp_path, serial_meter), serial_meter.unplug)
    assert poller.samples[0].failed_reads >= 3


def test_the_next_recording_reaches_a_meter_that_came_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("powerlab.power.sampling.stream._RETRY_S", 0.01)
    first = TcpMeter()
    channel = channel_of(configure(tmp_path, f"tcp://127.0.0.1:{first.port}"))
    poller = Poller([channel], 0.01)
    poller.start()
    until(lambda: poller.samples[0].value)
    first.kill()
    poller.stop()
    second: list[TcpMeter] = []
    try:
        starting = threading.Thread(target=lambda: second.append(TcpMeter(first.port)))
        starting.start()
        poller.start()
        until(lambda: poller.samples[0].value)
        poller.stop()
        starting.join()
    finally:
        for one in second:
            one.kill()


def test_nobody_there_is_broken_with_the_address(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    probe = Meter().probe(configure(tmp_path, f"tcp://127.0.0.1:{port}"))
    assert probe.availability is Availability.BROKEN
    assert f"127.0.0.1:{port}" in probe.detail
    assert "cable" in probe.remedy


def test_a_meter_that_sends_something_else_is_quoted(
    tmp_path: Path, tcp_meter: TcpMeter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(meter_module, "_PATIENCE_S", 0.2)
    tcp_meter.line = "VOLTS 230"
    probe = Meter().probe(configure(tmp_path, f"tcp://127.0.0.1:{tcp_meter.port}"))
    assert probe.availability is Availability.BROKEN
    assert "'VOLTS 230'" in probe.detail


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("serial:///dev/ttyUSB7", "No such file"),
        ("serial:///dev/ttyUSB7?baud=123", "123 baud"),
        ("serial:///dev/plain", "not a serial port"),
    ],
)
def test_a_serial_line_that_is_none(tmp_path: Path, address: str, words: str) -> None:
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/plain").write_text("12.5\n")
    probe = Meter().probe(configure(tmp_path, address))
    assert probe.availability is Availability.BROKEN
    assert words in probe.detail
    assert probe.remedy


def test_a_line_that_this_user_may_not_open_is_denied(
    tmp_path: Path, serial_meter: SerialMeter, monkeypatch: pytest.MonkeyPatch
) -> None:
    sysroot = plug_in(tmp_path, serial_meter)
    honest = os.open

    def refuse(path: str, *rest: int) -> int:
        if path.endswith("ttyUSB0"):
            raise PermissionError(13, "Permission denied", path)
        return honest(path, *rest)

    monkeypatch.setattr(os, "open", refuse)
    probe = Meter().probe(sysroot)
    assert probe.availability is Availability.DENIED
    assert "dialout" in probe.remedy


def test_a_wrong_file_is_broken_and_says_key_and_mend(tmp_path: Path) -> None:
    sysroot = configure(tmp_path, "tcp://127.0.0.1:1", relative_error=7)
    probe = Meter().probe(sysroot)
    assert probe.availability is Availability.BROKEN
    assert "relative_error" in probe.detail
    assert not Meter().channels(sysroot)


def test_an_example_bridge_of_a_few_lines_works(tmp_path: Path) -> None:
    """What the module's text promises: a short script between any meter and powerlab."""
    server = socket.create_server(("127.0.0.1", 0))

    def bridge() -> None:
        connection, _ = server.accept()
        with suppress(ConnectionError), connection, connection.makefile("w") as out:
            for power_w in itertools.cycle((12.0, 12.5, 13.0)):
                print(f"{power_w} W", file=out, flush=True)
                time.sleep(0.01)

    script = threading.Thread(target=bridge)
    script.start()
    try:
        assert available(Meter().probe(configure(tmp_path, f"tcp://127.0.0.1:{server.getsockname()[1]}")))
    finally:
        script.join()
        server.close()
