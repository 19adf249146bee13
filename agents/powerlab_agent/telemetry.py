"""Telemetry: readings of the device and phases of its sweep, for people who watch.

A thread of its own reads and sends. In quiet phases, in which power is measured for a figure, it does neither:
:meth:`Telemetry.announce` returns when what was going on is over and the phase itself has been told. It waits for that
no longer than :data:`LONGEST_WAIT_S`; a request that a server leaves unanswered for so long costs the device nothing
until its answer comes.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from types import TracebackType
from typing import Protocol

from powerlab.domain.phase import QUIET, RunPhase
from powerlab.protocol.readings import DeviceReading, PhaseReport, ReadingsReply, ReadingsUpload, Snapshot
from powerlab.sweep.events import RunFinished, RunStarted, SearchEnded, SweepEvent, SweepExtended, SweepStarted
from powerlab_agent.client import RefusedError, ServerUnreachableError

_log = logging.getLogger("powerlab.agent")
FIRST_PERIOD_S, SHORTEST_PERIOD_S, LONGEST_PERIOD_S = 10.0, 0.5, 60.0
LONGEST_WAIT_S = 1.0
REST_S = 30.0
"""How long a server that does not take readings is left alone with them."""
MOST_KEPT = 60
OLDEST_S = 300.0
"""Readings that wait for a server: as many, and as old, at most."""


class Sender(Protocol):
    """What takes readings."""

    def send_readings(self, message: ReadingsUpload) -> ReadingsReply:
        """Send them; raises as :class:`powerlab_agent.client.Client` does."""
        ...


class Reads(Protocol):
    """What reads the device."""

    def snapshot(self) -> Snapshot:
        """Return what it reads now."""
        ...


class Telemetry:
    """Reads and sends as long as the context is open."""

    def __init__(
        self,
        sender: Sender,
        open_reader: Callable[[bool], AbstractContextManager[Reads]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare.

        Args:
            sender: where readings go.
            open_reader: opens the device; its argument says whether sources that send by themselves may be read.
            clock: tells seconds; tests bring their own.
        """
        self._sender, self._open_reader, self._clock = sender, open_reader, clock
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._live, name="telemetry", daemon=True)
        self._over = self._busy = self._quiet = self._measuring = False
        self._report: PhaseReport | None = None
        self._unsaid = self._reopen = False
        self._period_s, self._due_s, self._not_before_s = FIRST_PERIOD_S, clock(), 0.0
        self._waiting: deque[tuple[float, Snapshot]] = deque(maxlen=MOST_KEPT)
        self._opened: AbstractContextManager[Reads] | None = None
        self._reader: Reads | None = None

    def __enter__(self) -> Telemetry:
        """Start."""
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop; what goes on is given a moment."""
        with self._changed:
            self._over = True
            self._changed.notify_all()
        self._thread.join(LONGEST_WAIT_S)

    @contextmanager
    def job(self, sweep_id: str) -> Iterator[None]:
        """Carry out a sweep: sources that serve one reader alone are left to it."""
        self._measuring, self._reopen = True, True
        self._report = PhaseReport(sweep_id=sweep_id, phase=RunPhase.PREPARING)
        self.announce(RunPhase.PREPARING, None, wait_s=60.0)  # until the sensors are free
        try:
            yield
        finally:
            with self._changed:
                self._measuring, self._quiet, self._unsaid, self._reopen = False, False, False, True
                self._report = None
                self._changed.notify_all()

    def note(self, event: SweepEvent) -> None:
        """Keep up with a sweep."""
        report = self._report
        if report is None:
            return
        if isinstance(event, SweepStarted | SweepExtended | SearchEnded):
            self._report = replace(report, run_count=event.run_count)
        elif isinstance(event, RunStarted):
            self._report = replace(report, point=event.point, run_index=event.index, run_count=event.run_count)
        elif isinstance(event, RunFinished):
            self._report = replace(report, point=None)
            self.announce(RunPhase.BETWEEN, None)

    def announce(self, phase: RunPhase, left_s: float | None, wait_s: float = LONGEST_WAIT_S) -> None:
        """Tell that a phase begins; returns when nothing is read or sent any more, if the phase is a quiet one."""
        with self._changed:
            if self._report is None:
                return
            self._report = replace(self._report, phase=phase, left_s=left_s)
            self._unsaid, self._quiet = True, phase in QUIET
            self._changed.notify_all()
            if self._quiet:
                self._changed.wait_for(lambda: not (self._busy or self._unsaid or self._reopen), wait_s)

    def _live(self) -> None:
        try:
            while self._turn():
                pass
        finally:
            self._close()

    def _turn(self) -> bool:
        """Wait until there is something to do, and do it; False at the end."""
        with self._changed:
            self._busy = False
            self._changed.notify_all()
            while not (self._over or self._unsaid or self._reopen or self._is_due()):
                self._changed.wait(None if self._quiet else max(0.0, self._due_s - self._clock()))
            if self._over:
                return False
            report, self._unsaid = (self._report if self._unsaid else None), False
            reopen, self._reopen = self._reopen, False
            reads, streaming = self._is_due(), not self._measuring
            self._busy = True
        if reopen:
            self._close()
        if self._reader is None and (reopen or reads):
            self._open(streaming=streaming)
        if reads:
            self._read()
        self._send(report)
        return True

    def _is_due(self) -> bool:
        return not self._quiet and self._clock() >= self._due_s

    def _open(self, *, streaming: bool) -> None:
        try:
            self._opened = self._open_reader(streaming)
            self._reader = self._opened.__enter__()
        except Exception:  # whatever a driver does wrong, the agent's work is measuring
            _log.exception("the device cannot be read for telemetry; that is tried again")
            self._opened = self._reader = None

    def _close(self) -> None:
        opened, self._opened, self._reader = self._opened, None, None
        if opened is not None:
            opened.__exit__(None, None, None)

    def _read(self) -> None:
        self._due_s = self._clock() + self._period_s
        if self._reader is None:
            self._due_s = self._clock() + REST_S
            return
        try:
            seen = self._reader.snapshot()
        except Exception:
            _log.exception("the device cannot be read for telemetry; that is tried again")
            self._close()
            return
        point = self._report.point if self._report is not None else None
        self._waiting.append((self._clock(), seen if point is None else replace(seen, mode=point.mode)))

    def _send(self, report: PhaseReport | None) -> None:
        now_s = self._clock()
        while self._waiting and now_s - self._waiting[0][0] > OLDEST_S:
            self._waiting.popleft()
        if now_s < self._not_before_s or not (report or self._waiting):
            return
        readings = tuple(DeviceReading(age_s=now_s - at_s, seen=seen) for at_s, seen in self._waiting)
        try:
            reply = self._sender.send_readings(ReadingsUpload(readings=readings, phase=report))
        except (ServerUnreachableError, RefusedError) as error:
            rest_s = max(REST_S, error.rest_s if isinstance(error, ServerUnreachableError) else 0.0)
            _log.info("readings are not taken, which is tried again in %.0f s: %s", rest_s, error)
            self._not_before_s = now_s + rest_s
            if isinstance(error, RefusedError):
                self._waiting.clear()  # they would be refused again
            return
        self._waiting.clear()
        self._period_s = min(max(reply.period_s, SHORTEST_PERIOD_S), LONGEST_PERIOD_S)
        self._due_s = min(self._due_s, now_s + self._period_s)
