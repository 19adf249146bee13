"""Reads a device again and again. It only reads, and tells what that costs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from powerlab.domain.power import Availability, Rail, TotalFormula
from powerlab.nvml_library import Library, NvmlError, NvmlUnavailableError, session
from powerlab.power.base import PolledChannel
from powerlab.power.registry import channels_of
from powerlab.readings.clocks import read_clocks
from powerlab.readings.minute import Minute, Recent
from powerlab.readings.rails import LiveRail
from powerlab.readings.reading import RailReading, Reading, Temperature, Total
from powerlab.readings.state import current_mode, job, uptime_s
from powerlab.sweep.host import Host
from powerlab.throttling.busy_cores import read_ticks
from powerlab.throttling.temperatures import Temperatures
from powerlab.throttling.zones import Zones

MODE_EVERY_S = 5.0
"""Modes seldom change."""


class Reader:
    """Reads a device again and again, as long as the context is open.

    Args:
        host: the device.
        streaming: whether sources are read that send by themselves, which may serve one reader alone.
        mode_every_s: how often the power mode is asked for; that may start the vendor's program.
    """

    def __init__(self, host: Host, *, streaming: bool = True, mode_every_s: float = MODE_EVERY_S) -> None:
        self._host, self._sysroot = host, host.sysroot
        self._stack, self._streaming = ExitStack(), streaming
        self._mode_every_ns = round(mode_every_s * 1e9)
        self._device = host.device()
        self._live: dict[str, LiveRail] = {}
        self._unread: dict[str, tuple[Rail, str]] = {}
        self._minutes: dict[str, Minute] = {}
        self._total_minute = Minute()
        self._total: TotalFormula | None = None
        self._cards: tuple[Library, range] | None = None
        self._ticks = read_ticks(self._sysroot)
        self._mode: tuple[int, str, str] | None = None

    def __enter__(self) -> Self:
        with ExitStack() as opening:
            opening.push(self._stack.__exit__)
            self._temperatures = self._stack.enter_context(Temperatures(self._sysroot))
            self._limits = Zones(self._sysroot, asleep=True).limits_c()
            try:
                library = self._stack.enter_context(session(self._sysroot))
                self._cards = library, library.devices()
            except (NvmlUnavailableError, NvmlError):
                self._cards = None
            self._open_rails()
            self.read()  # counters and load are differences to the reading before
            opening.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def _open_rails(self) -> None:
        capabilities = self._host.capabilities()
        self._total = capabilities.total
        sessions: dict[object, str] = {}
        for source in capabilities.sources:
            if source.availability is not Availability.AVAILABLE:
                why = source.remedy or source.detail
                self._unread |= {rail.key: (rail, f"{source.availability}: {why}") for rail in source.rails}
                continue
            for channel in channels_of(self._sysroot, [rail.key for rail in source.rails]):
                key = channel.rail.key
                opens = channel.session if isinstance(channel, PolledChannel) else None
                if opens is not None and not self._streaming:
                    self._unread[key] = (channel.rail, "is left to the runs of the sweep")
                    continue
                try:
                    if opens is not None and opens not in sessions:
                        self._stack.enter_context(opens())
                        sessions[opens] = key
                    self._live[key] = LiveRail(self._sysroot, channel, self._stack)
                except OSError as error:
                    self._unread[key] = (channel.rail, f"cannot be opened: {error.strerror or error}")

    def read(self) -> Reading:
        """Return everything as it is now."""
        began_s = time.process_time()
        now_ns = time.monotonic_ns()
        rails = self._read_rails(now_ns)
        found = self._temperatures.read()
        mode, at_work = self._read_mode(now_ns)
        return Reading(
            device=self._device.name,
            board=self._device.board,
            mode=mode,
            job=at_work,
            uptime_s=uptime_s(self._sysroot),
            rails=rails,
            total=self._add_up(now_ns, rails),
            clocks=read_clocks(self._sysroot, self._cards),
            temperatures=tuple(
                Temperature(name=name, celsius=celsius, limit_c=self._limits.get(name))
                for name, celsius in found.items()
            ),
            busy=self._busy(),
            cost_s=time.process_time() - began_s,
        )

    def _read_rails(self, now_ns: int) -> tuple[RailReading, ...]:
        read = []
        for key, live in self._live.items():
            power_w = live.power_w()
            recent = self._minutes.setdefault(key, Minute()).add(now_ns, power_w)
            problem = "cannot be read now" if power_w is None else ""
            read.append(RailReading(rail=key, provenance=live.rail.provenance, recent=recent, problem=problem))
        for key, (rail, problem) in self._unread.items():
            read.append(RailReading(rail=key, provenance=rail.provenance, recent=Recent(None), problem=problem))
        return tuple(read)

    def _add_up(self, now_ns: int, rails: Sequence[RailReading]) -> Total | None:
        if self._total is None:
            return None
        parts = {rail.rail: rail for rail in rails if rail.rail in self._total.rails}
        watts = [rail.recent.power_w for rail in parts.values() if rail.recent.power_w is not None]
        power_w = sum(watts) if len(watts) == len(self._total.rails) else None
        return Total(
            recent=self._total_minute.add(now_ns, power_w),
            provenance=parts[self._total.rails[0]].provenance,
            scope=self._total.scope,
            proposed=self._total.proposed,
        )

    def _read_mode(self, now_ns: int) -> tuple[str, str]:
        if self._mode is None or now_ns - self._mode[0] >= self._mode_every_ns:
            self._mode = now_ns, current_mode(self._host), job(self._host)
        return self._mode[1:]

    def _busy(self) -> dict[int, float]:
        before, self._ticks = self._ticks, read_ticks(self._sysroot)
        return {
            number: (work - before[number][0]) / (total - before[number][1])
            for number, (work, total) in self._ticks.items()
            if number in before and total > before[number][1]
        }
