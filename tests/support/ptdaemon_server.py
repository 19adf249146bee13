"""A stand-in for SPEC's PTDaemon: its side of the published conversation, over real TCP.

Answers and samples are as MLCommons' power-dev and the SPEC CPU 2017 harness expect and quote them, the powers those of
power-dev's example log. It serves one client at a time, as PTDaemon does, and notes every command.
"""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress
from typing import ClassVar

WATTS = (23.37, 32.81, 40.89, 40.29, 42.66, 39.35, 41.8, 43.2)


class PtdServer:
    """Starts at once; ``kill`` ends it as a crash would.

    Attributes:
        commands: what clients asked.
        ranges: amperes and volts; "Auto" finds a range by itself.
        reads: the command its samples are read with; others are refused as PTDaemon refuses them.
        silent: no samples come.
        watts: what the samples say, over and over.
        identity: its answer to ``Identify``.
    """

    refusals: ClassVar = {"RL": "Invalid number of parameters", "RL,*,*": "Unknown command"}

    def __init__(self, port: int = 0) -> None:
        self.commands: list[str] = []
        self.ranges = {"A": "Auto", "V": "300.000000"}
        self.reads = "RL"
        self.silent = False
        self.watts: tuple[float, ...] = WATTS
        self.greeting = "Hello, PTDaemon here!"
        self.go = "Starting untimed measurement, maximum 500000 samples at {}ms with 0 rampup samples"
        self.identity = (
            "YokogawaWT310,1000,1,1,1,1,0,1,1,version=1.9.2-4d6a6e1c-20200911,OS=Linux 5.4.0,mode=power,1,1,1,0,0,"
            "no_cal_date,YOKOGAWA WT310 C2PH13047V F1.04"
        )
        self.measuring = False
        self._sample = 0
        self._interval_s = 1.0
        self._due_ns = 0
        self._connection: socket.socket | None = None
        self._server = socket.create_server(("127.0.0.1", port))
        self.port = self._server.getsockname()[1]
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def kill(self) -> None:
        with suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        if self._connection is not None:
            with suppress(OSError):
                self._connection.shutdown(socket.SHUT_RDWR)
        self._thread.join()

    def _serve(self) -> None:
        while True:
            try:
                self._connection, _ = self._server.accept()
            except OSError:
                return
            with suppress(OSError), self._connection, self._connection.makefile("rw", newline="") as lines:
                for line in lines:
                    assert line.endswith("\r\n"), line
                    self.commands.append(line.strip())
                    lines.write("".join(f"{answer}\r\n" for answer in self._answers(line.strip())))
                    lines.flush()

    def _answers(self, command: str) -> list[str]:
        word, *arguments = command.split(",")
        if command in {*self.refusals, "DC-RL"}:
            return [self.refusals.get(command, "Unknown command")] if command != self.reads else self._samples()
        answer = "Unknown command"
        match word, arguments:
            case "Hello", []:
                answer = self.greeting
            case "Identify", []:
                answer = self.identity
            case "RR", []:
                shown = ["1,-1.000000" if self.ranges[kind] == "Auto" else f"0,{self.ranges[kind]}" for kind in "AV"]
                answer = f"Ranges,{','.join(shown)}"
            case "SR", [("A" | "V") as kind, value]:
                self.ranges[kind] = value
                answer = f"Range {kind} changed"
            case "Go", [interval, "0", _]:
                self.measuring, self._interval_s = True, int(interval) * 1e-3
                self._due_ns = time.monotonic_ns()
                answer = self.go.format(interval)
            case "Stop", []:
                self.measuring = False
                answer = "Stopping untimed measurement"
        return [answer]

    def _samples(self) -> list[str]:
        if not self.measuring:
            return ["No measurement in progress"]
        waiting = int((time.monotonic_ns() - self._due_ns) * 1e-9 / self._interval_s)
        if self.silent or waiting < 1:
            return ["No unread samples available"]
        self._due_ns += round(waiting * self._interval_s * 1e9)
        return [f"Last {waiting} sample{'s' * (waiting != 1)}", *(self._one() for _ in range(waiting))]

    def _one(self) -> str:
        power_w = self.watts[self._sample % len(self.watts)]
        self._sample += 1
        channel = f"Watts,{power_w:.6f},Volts,228.810000,Amps,0.202450,PF,0.504500"
        more = "" if self.reads != "RL,*,*" else f",{channel.replace(f'{power_w:.6f}', '1.000000')}"
        return f"Time,12-23-2020 10:26:08.757,{channel}{more},Mark,powerlab"
