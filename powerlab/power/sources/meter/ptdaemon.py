"""A client of SPEC's PTDaemon, the program that reads the power analysers of SPEC and MLPerf results.

PTDaemon answers one line, ended by CR LF, to each command over TCP. Used are (established from what public clients
send and expect: MLCommons' power-dev, ``ptd_client_server/lib/server.py`` and ``compliance/check.py``, and the harness
of SPEC CPU 2017, which also quotes PTDaemon's design document):

    Hello                 "Hello, PTDaemon here!"
    Identify              "NAME,INTERVAL_MS,WATTS,...,version=...,OS=...,mode=power,..."
    RR                    "Ranges,AMP_AUTO,AMPS,VOLT_AUTO,VOLTS": 1 finds its range itself, 0 has a fixed one
    SR,A,AMPS SR,V,VOLTS  "Range A changed": sets a range, or "Auto"
    Go,MS,0,MARK          "Starting untimed measurement, maximum 500000 samples at 1000ms with 0 rampup samples"
    RL                    "Last N samples", then N lines; "No unread ..." or "Insufficient unread ..." for none
    Stop                  "Stopping untimed measurement"

A sample is ``Time,12-23-2020 10:26:08.757,Watts,23.370000,Volts,228.81,Amps,0.20245,PF,0.5045,Mark,run``. Its time is
the other machine's wall clock and is not used. Analysers of several channels answer ``RL`` with "Invalid number of
parameters" and are asked ``RL,*,*``, whose first Watts are the sum; those for direct current answer "Unknown command"
and are asked ``DC-RL``. A measurement that someone else has begun is left alone: ``Reset`` is never sent.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Sequence

from powerlab.power.sampling.stream import Arrival
from powerlab.power.sources.meter.config import MeterConfig
from powerlab.power.sources.meter.connections import CONNECT_S, open_tcp
from powerlab.power.sources.meter.line_protocol import RAIL

GREETING = "Hello, PTDaemon here!"
_READ_COMMANDS = ("RL", "RL,*,*", "DC-RL")
_REFUSALS = re.compile(r"(Invalid number of parameter|Unknown command)", re.IGNORECASE)
_NOTHING = re.compile(r"(No|Insufficient) (unread|data)", re.IGNORECASE)
_COUNT = re.compile(r"Last (\d{1,6}) samples?")
_LONGEST_LINE = 16384
_ASKS_PER_UPDATE = 4
_MARK = "powerlab"


def parse_sample(text: str) -> float:
    """Return a sample's power in W; of several channels the first, which is their sum.

    Raises:
        ValueError: it has none. PTDaemon gives a negative number where the analyser gave none.
    """
    fields = text.strip().split(",")
    if fields[0] != "Time" or "Watts" not in fields[2:-1]:
        raise ValueError(f"not a sample: {text[:60]!r}")
    number = fields[fields.index("Watts", 2) + 1]
    if not re.fullmatch(r"[+-]?\d{1,12}(\.\d{0,12})?([eE][+-]?\d{1,3})?", number, re.ASCII):
        raise ValueError(f"not a power: {number[:40]!r}")
    power_w = float(number)
    if not math.isfinite(power_w) or power_w < 0:
        raise ValueError(f"the analyser gave no power: {number}")
    return power_w


def parse_ranges(text: str) -> tuple[str, str]:
    """Return the ranges for current and voltage as ``SR`` takes them: a number, or ``Auto``.

    Raises:
        ValueError: it is not an answer to ``RR``.
    """
    fields = text.strip().split(",")
    if fields[0] != "Ranges" or len(fields) < 5:
        raise ValueError(f"not ranges: {text[:60]!r}")
    ranges = []
    for automatic, value in (fields[1:3], fields[3:5]):
        fixed = automatic == "0" and re.fullmatch(r"\d{1,9}(\.\d{1,9})?", value, re.ASCII) and float(value) > 0
        ranges.append(value if fixed else "Auto")
    return ranges[0], ranges[1]


class PtdFeed:
    """One measurement: from ``Go`` when it is made to ``Stop`` when it is closed."""

    def __init__(self, config: MeterConfig) -> None:
        """Connect, set what ranges are configured, and begin to measure.

        Raises:
            OSError: nobody answers, it is not a PTDaemon, or it refuses.
        """
        self.complaint = ""
        self._rest = b""
        self._read_command = 0
        self._restore: list[str] = []
        self._pause_s = config.update_period_s / _ASKS_PER_UPDATE
        self._started = False
        self._connection = open_tcp(config.address.host, config.address.port)
        try:
            self._begin(config)
        except BaseException:
            self.close()
            raise

    def receive(self, timeout_s: float) -> Sequence[Arrival]:
        """Ask once; the newest of the samples that have come since counts, for the others' arrival is not known."""
        time.sleep(min(self._pause_s, timeout_s))
        answer = self._ask(_READ_COMMANDS[self._read_command])
        now_ns = time.monotonic_ns()
        if _REFUSALS.match(answer) and self._read_command + 1 < len(_READ_COMMANDS):
            self._read_command += 1
            return ()
        if _NOTHING.match(answer):
            return ()
        count = _COUNT.match(answer)
        if count is None:
            raise ConnectionError(f"PTDaemon answered {answer[:60]!r}")
        samples = [self._line() for _ in range(int(count[1]))]
        try:
            return (Arrival(now_ns, {RAIL: parse_sample(samples[-1])}),) if samples else ()
        except ValueError as error:
            self.complaint = str(error)
            return ()

    def close(self) -> None:
        """Stop measuring, put ranges back and hang up; a connection that is gone already needs none of it."""
        try:
            for command in (["Stop"] if self._started else []) + self._restore:
                self._ask(command)
        except OSError as error:
            self.complaint = str(error)
        finally:
            self._connection.close()

    def _begin(self, config: MeterConfig) -> None:
        if (answer := self._ask("Hello")) != GREETING:
            raise ConnectionError(f"{config.address} is not a PTDaemon: it answered {answer[:60]!r}")
        identity = self._ask("Identify")
        if "mode=temperature" in identity:
            raise ConnectionError(f"{config.address} reads a thermometer; give the port of the power analyser")
        self._set_ranges(config)
        answer = self._ask(f"Go,{round(config.update_period_s * 1e3)},0,{_MARK}")
        if not answer.startswith("Starting untimed measurement"):
            raise ConnectionError(f"PTDaemon does not measure: {answer[:80]!r}")
        self._started = True
        self.receive(0.0)  # what an earlier measurement left unread is not of this one

    def _set_ranges(self, config: MeterConfig) -> None:
        wanted = {"A": config.current_range_a, "V": config.voltage_range_v}
        if not any(wanted.values()):
            return
        try:
            before = dict(zip("AV", parse_ranges(self._ask("RR")), strict=True))
        except ValueError as error:
            raise ConnectionError(f"PTDaemon does not tell its ranges: {error}") from error
        for kind, value in wanted.items():
            if value is None:
                continue
            answer = self._ask(f"SR,{kind},{value:g}")
            if not answer.startswith(f"Range {kind} changed"):
                raise ConnectionError(f"the analyser does not take the range {value:g} {kind}: {answer[:60]!r}")
            self._restore.append(f"SR,{kind},{before[kind]}")

    def _ask(self, command: str) -> str:
        self._connection.sendall(command.encode() + b"\r\n")
        return self._line()

    def _line(self) -> str:
        """Return the next line; ``RL`` may wait for a whole update before it answers."""
        self._connection.settimeout(CONNECT_S + _ASKS_PER_UPDATE * self._pause_s)
        while b"\n" not in self._rest:
            try:
                chunk = self._connection.recv(65536)
            except TimeoutError:
                raise ConnectionError("PTDaemon does not answer") from None
            if not chunk or len(self._rest) > _LONGEST_LINE:
                raise ConnectionError("PTDaemon has ended the connection" if not chunk else "this is not a PTDaemon")
            self._rest += chunk
        line, _, self._rest = self._rest.partition(b"\n")
        return line.decode("utf-8", "replace").strip()
