"""The agent's main loop: describe the device, lease a job, run it, upload, repeat."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Generator
from contextlib import closing, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal, Protocol, TypeVar

from powerlab.domain.device import SelfCheck
from powerlab.domain.device_state import ClockOffset
from powerlab.domain.errors import PowerlabError
from powerlab.domain.order import Done, Stage
from powerlab.domain.sweep import SweepPlan
from powerlab.protocol.messages import Backlog, Description, Finish, Lease, Meeting, RebootNotice
from powerlab.protocol.records import OVER, SweepState
from powerlab.sweep.events import (
    CoolingDown,
    RebootNeeded,
    RunFinished,
    RunStarted,
    SearchEnded,
    SweepEvent,
    SweepExtended,
    SweepFinished,
    SweepStarted,
)
from powerlab.sweep.host import Host
from powerlab_agent import clusters
from powerlab_agent.client import CONFLICT, STALE_LEASE, UNAUTHORISED, Client, RefusedError, ServerUnreachableError
from powerlab_agent.clock import ServerClock
from powerlab_agent.heartbeat import Heartbeat
from powerlab_agent.models import ModelCache
from powerlab_agent.reboots import DOWN_S, RebootingError, Reboots
from powerlab_agent.retry import Backoff
from powerlab_agent.room import SpoolUnwritableError
from powerlab_agent.spool import Spool
from powerlab_agent.status import Status
from powerlab_agent.telemetry import Telemetry
from powerlab_agent.uploader import LeaseLostError, Uploader

_log = logging.getLogger("powerlab.agent")
_LEASE_WAIT_S = 5.0
"""How long a lease request waits; SIGTERM is heeded after that at the latest."""
T = TypeVar("T")


class SweepRunner(Protocol):
    """What carries a plan out; :func:`powerlab.sweep.runner.run_sweep` unless a test brings its own."""

    def __call__(
        self,
        plan: SweepPlan,
        sweep_id: str,
        host: Host,
        done: Done,
        stop: threading.Event | None,
        /,
    ) -> Generator[SweepEvent, None, None]:
        """Yield what happens."""
        ...


def _run_sweep(
    plan: SweepPlan, sweep_id: str, host: Host, done: Done, stop: threading.Event | None
) -> Generator[SweepEvent, None, None]:
    """Load what measures when there is something to measure: an idle agent has no need of numpy and the engine."""
    from powerlab.sweep.runner import run_sweep

    return run_sweep(plan, sweep_id, host, done, stop)


class _StoppedError(Exception):
    """Told to stop while something had to be waited for; everything is on disk for the next life."""


class _NoRoomError(Exception):
    """A run was measured and cannot be put on disk now."""

    def __init__(self, why: str, finished: RunFinished) -> None:
        super().__init__(why)
        self.finished = finished


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ended:
    """How a sweep ended: why it failed, if it did, that it was told to stop before its end, or what a reboot is for."""

    failure: str | None = None
    stopped: bool = False
    reboot_for: tuple[Stage, ...] = ()


@dataclass(slots=True, kw_only=True)
class Daemon:
    """An agent on one device.

    Attributes:
        client: the server.
        host: the device.
        spool: what was measured and not yet uploaded.
        models: fetches the models that plans name by their SHA-256.
        once: end when there is nothing to do, instead of waiting.
        runner: carries a plan out.
        backoff: how long to wait for a server that is away.
        status: what it does now, for whoever shows it.
        backlog: says what waits to be uploaded; may be called by another thread.
        telemetry: shows the device to people who watch; None for nobody.
        checks: says what the agent needs and whether it is there; asked once, for the description.
    """

    client: Client
    host: Host
    spool: Spool
    models: ModelCache
    once: bool = False
    runner: SweepRunner = _run_sweep
    backoff: Backoff = field(default_factory=Backoff)
    status: Status = field(default_factory=Status)
    checks: Callable[[], tuple[SelfCheck, ...]] = tuple
    backlog: Callable[[], Backlog | None] = lambda: None
    telemetry: Telemetry | None = None
    _described: bool = False
    _heartbeat: Heartbeat | None = None
    _stop: threading.Event = field(default_factory=threading.Event)
    _halt_sweep: threading.Event = field(default_factory=threading.Event)
    _uploader: Uploader = field(init=False)
    _clock: ServerClock = field(init=False)
    _reboots: Reboots = field(init=False)

    def __post_init__(self) -> None:
        self._uploader = Uploader(self.client, self.spool, self.backoff, status=self.status)
        self._clock = ServerClock(self.client.time)
        self._reboots = Reboots(spool=self.spool, host=self.host, stop=self._stop)

    def request_stop(self) -> None:
        """End soon: the run in progress is finished and uploaded, and the job given back. May be called anywhere."""
        self._stop.set()
        self._halt_sweep.set()

    def run(self) -> bool:
        """Live until told to stop, or with ``once`` until the queue is empty.

        Returns:
            whether the device has rebooted meanwhile, which only a simulated board can do without ending this process.

        Raises:
            PowerlabError: the server refuses this agent, or the device does not come back from a reboot.
        """
        for setting in self.host.controller.recover():
            _log.warning("put back %s %s, which a killed process had left changed", setting.knob, setting.target)
        try:
            while not self._stop.is_set():
                lease = self._held_lease() or self._new_lease()
                if lease is not None and lease.part is not None:
                    self._follow(lease)
                elif lease is not None:
                    self._carry_out(lease)
                elif self.once:
                    return False
        except _StoppedError as stopped:
            _log.warning("stopped while %s; the next start goes on from here", stopped)
        except RebootingError:
            return not self._stop.is_set()
        if away := self._reboots.away():
            _log.warning("%s", away)
        return False

    def _insist(self, action: Callable[[], T]) -> T:
        """Do it until the server answers and the disk has room; once told to stop, one try is enough."""
        while True:
            try:
                result = action()
            except (ServerUnreachableError, SpoolUnwritableError) as error:
                wait_s = self.backoff.failed(error.rest_s if isinstance(error, ServerUnreachableError) else 0.0)
                _log.warning("%s Trying again in %.1f s.", _sentence(error), wait_s)
                if self._stop.wait(wait_s):
                    what = "there was no room" if isinstance(error, SpoolUnwritableError) else "the server was away"
                    raise _StoppedError(f"{what} ({error})") from error
            else:
                self.backoff.worked()
                return result

    def _held_lease(self) -> Lease | None:
        """Return the job that an earlier life of this agent held, unless the server says that it is over.

        A server that is away says nothing, and the fencing token decides in the end who may write: measuring goes on.
        """
        held = self.spool.held()
        if held is None:
            return None
        try:
            state = self.client.heartbeat(held.job_id, held.fencing_token)
        except ServerUnreachableError as error:
            _log.warning("%s The job of the last time goes on.", _sentence(error))
            return held
        except RefusedError as error:
            if error.status == UNAUTHORISED:
                raise
            _log.warning("the job of the last time is over: %s", error)
            self._insist(self.spool.let_go)
            return None
        if state is not SweepState.RUNNING:
            _log.info("the sweep %s was %s meanwhile", held.sweep_id, state)
            self._see_through(held, lambda: _Ended(stopped=True))
            return None
        return held

    def _describe(self) -> None:
        checks = self.checks()
        device, capabilities = self.host.device(), self.host.capabilities()
        self.client.describe(Description(device=device, capabilities=capabilities, checks=checks))
        for one in checks:
            _log.log(logging.INFO if one.passed else logging.WARNING, "check %s: %s", one.name, one.detail)

    def _new_lease(self) -> Lease | None:
        self._insist(self._reboots.return_home)
        if not self._described:
            self._insist(self._describe)
            self._described = True
        wait_s = 0.0 if self.once else _LEASE_WAIT_S
        lease = self._insist(lambda: self.client.lease(wait_s, self.backlog()))
        if lease is None:
            # Runs left over from jobs that are over; those of a job that came back go out under its new token.
            self._insist(lambda: self._uploader.upload_all(None))
        return lease

    def _carry_out(self, lease: Lease) -> None:
        _log.info("sweep %s begins", lease.sweep_id)
        self._insist(lambda: self.spool.hold(lease))
        self._clock.refresh_if_due()
        self._halt_sweep = threading.Event()
        if self._stop.is_set():
            self._halt_sweep.set()
        self._reboots.prepare(lease.sweep_id)
        heart = Heartbeat(self.client, lease, self._halt_sweep.set, lambda: self.status.waits, self.backlog)
        with heart as self._heartbeat:
            stages = self._see_through(lease, lambda: self._fetched_and_measured(lease))
        if stages:  # without a heartbeat, which would shorten the time that the server grants
            self._reboot(lease, stages)

    def _follow(self, lease: Lease) -> None:
        """Do another device's bidding for a job; that one has all results, and says how the job ends."""
        _log.info("sweep %s begins, of several devices", lease.sweep_id)
        self._halt_sweep = threading.Event()
        if self._stop.is_set():
            self._halt_sweep.set()
        with Heartbeat(self.client, lease, lambda: None, lambda: self.status.waits, self.backlog):
            if self._fetch_models(lease) is None:
                watched = nullcontext() if self.telemetry is None else self.telemetry.job(lease.sweep_id)
                with self.status.job(), watched:
                    clusters.follow(lease, self.host, self._halt_sweep)
        self._stop.wait(clusters.PAUSE_S)

    def _reboot(self, lease: Lease, stages: tuple[Stage, ...]) -> None:
        """Reboot into a sweep's next power modes, unless the sweep is not wanted any more; all it has is uploaded."""
        notice = RebootNotice(fencing_token=lease.fencing_token, mode=" and ".join(stages[0].modes), down_s=DOWN_S)
        try:
            state = self._insist(lambda: self.client.announce_reboot(lease.job_id, notice))
        except RefusedError as error:
            if error.status == UNAUTHORISED:
                raise
            failure = str(error)
            self._see_through(lease, lambda: _Ended(failure=failure))
            return
        if state is SweepState.RUNNING and not self._stop.is_set():
            self._insist(lambda: self._reboots.go(lease.sweep_id, stages))
        else:
            self._see_through(lease, lambda: _Ended(stopped=True))

    def _fetched_and_measured(self, lease: Lease) -> _Ended:
        ended = self._fetch_models(lease)
        if ended is None:
            watched = nullcontext() if self.telemetry is None else self.telemetry.job(lease.sweep_id)
            with self.status.job(), watched:
                ended = self._led(lease)
        return ended

    def _led(self, lease: Lease) -> _Ended:
        """Measure, with the other devices of the job where it has some."""

        def tell(meeting: Meeting) -> None:
            self._insist(lambda: self.client.tell_meeting(lease.job_id, meeting))

        with clusters.leading(lease, self.client, self.host, self._halt_sweep, tell):
            return self._measure(lease)

    def _see_through(self, lease: Lease, measure: Callable[[], _Ended]) -> tuple[Stage, ...]:
        """Measure, upload everything, say how it ended, and let go of the job.

        Returns:
            the stages that are left and begin with a reboot, for which the job is kept; none where it is over.
        """
        try:
            ended = measure()
            self._insist(lambda: self._uploader.upload_all(lease))
            if ended.reboot_for:
                return ended.reboot_for
            self._insist(lambda: self._close(lease, ended))
        except LeaseLostError as error:
            _log.warning("the job was given to somebody else: %s", error)
        self._insist(self.spool.let_go)
        return ()

    def _fetch_models(self, lease: Lease) -> _Ended | None:
        """Bring the plan's models onto this device; returns how the sweep ended where they cannot be had."""
        try:
            files = self._insist(lambda: self.models.fetch(lease.plan.models, self._halt_sweep.is_set))
        except RefusedError:
            raise
        except PowerlabError as error:
            _log.error("the sweep cannot be carried out: %s", error)
            return _Ended(failure=str(error))
        if files is None:
            return _Ended(stopped=True)
        self.host.model_files = files
        return None

    def _measure(self, lease: Lease) -> _Ended:
        """Run what is missing; where the disk has no room for another run, stop measuring until it has."""
        while True:
            try:
                return self._measure_on(lease)
            except _NoRoomError as no_room:
                # The sweep was left, so the device has its own power mode back while this waits.
                _log.error("Measuring stops. %s", _sentence(no_room))
                self._insist(partial(self._upload_and_keep, no_room.finished, lease))
                _log.info("there is room again, and measuring goes on")

    def _upload_and_keep(self, finished: RunFinished, lease: Lease) -> None:
        self._uploader.upload_if_due(lease)  # what the server takes makes room
        self._keep(finished, lease)

    def _keep(self, finished: RunFinished, lease: Lease) -> None:
        """Put a run on disk."""
        for complaint in self.spool.add(finished, lease.fencing_token):
            _log.error("run %s: %s", finished.run.id, complaint)
        _log.info("run %d of %d: %s", finished.index, finished.run_count, finished.run.verdict)

    def _measure_on(self, lease: Lease) -> _Ended:
        """Run what is missing; every run is on disk before the next begins."""
        stopped, offset = False, None
        reboot_for: tuple[Stage, ...] = ()
        try:
            with closing(
                self.runner(lease.plan, lease.sweep_id, self.host, self._done(lease), self._halt_sweep)
            ) as events:
                for event in events:
                    self._note(event)
                    if isinstance(event, SweepStarted) and event.advice:
                        _log.warning("%s", event.advice)
                    if isinstance(event, SweepExtended | SearchEnded):
                        _log.info("%s", event.detail)
                    if isinstance(event, SweepFinished):
                        stopped = event.stopped
                    if isinstance(event, RebootNeeded):
                        reboot_for = event.stages
                    if isinstance(event, RunStarted):
                        offset = self._clock.offset()
                    if isinstance(event, RunFinished):
                        self._keep_or_stop(_with_clock(event, offset), lease)
                        self._uploader.upload_if_due(lease)
                        self._clock.refresh_if_due()
        except (LeaseLostError, RefusedError, _NoRoomError):
            raise
        except PowerlabError as error:
            _log.error("the sweep cannot be carried out: %s", error)
            return _Ended(failure=str(error))
        except Exception as error:
            _log.exception("the sweep broke off")
            return _Ended(
                failure=f"the sweep broke off by an error in powerlab ({type(error).__name__}); the agent's log has "
                "the rest."
            )
        return _Ended(stopped=stopped, reboot_for=reboot_for)

    def _note(self, event: SweepEvent) -> None:
        """Keep up with a sweep; that it waits, or goes on, is told to the server at once."""
        waited = self.status.waits
        self.status.note(event)
        if self.telemetry is not None:
            self.telemetry.note(event)
        if self.status.waits != waited and self._heartbeat is not None:
            self._heartbeat.beat_now()
        if isinstance(event, CoolingDown):
            _log.warning("the sweep %s", event.detail)

    def _keep_or_stop(self, finished: RunFinished, lease: Lease) -> None:
        try:
            self._keep(finished, lease)
        except SpoolUnwritableError as error:
            raise _NoRoomError(str(error), finished) from error

    def _done(self, lease: Lease) -> Done:
        stored = {(run.point_id, run.repeat): run.figures for run in lease.done}
        return {**stored, **self.spool.done(lease.sweep_id)}

    def _close(self, lease: Lease, ended: _Ended) -> None:
        """Tell the server how it ended: done, failed, or broken off before the end and to be given out again."""
        try:
            if ended.failure is None and (ended.stopped or self._lacks_runs(lease)):
                left = self.client.release(lease.job_id, lease.fencing_token)
                _log.info("sweep %s is given back unfinished, and is %s", lease.sweep_id, left)
                if left in OVER:
                    self.spool.forget_done(lease.sweep_id)
                return
            failure = ended.failure or self._not_taken(lease)
            state: Literal["done", "failed"] = "done" if failure is None else "failed"
            message = Finish(fencing_token=lease.fencing_token, state=state, detail=failure or "")
            self.client.finish(lease.job_id, message)
        except RefusedError as error:
            if error.kind != STALE_LEASE:
                raise
            raise LeaseLostError(str(error)) from error
        self.spool.forget_done(lease.sweep_id)
        _log.info("sweep %s is %s", lease.sweep_id, state)

    def _lacks_runs(self, lease: Lease) -> bool:
        """Whether runs of the plan are missing; a search that has ended by itself lacks none."""
        if lease.plan.search_percent:
            return False
        wanted = {(point.id, repeat) for point in lease.plan.points() for repeat in range(lease.plan.repeats)}
        return not wanted <= set(self._done(lease))

    def _not_taken(self, lease: Lease) -> str | None:
        """Say which runs of a sweep the server did not take; what it has already, from another agent, is none."""
        reasons = [
            refused.reason
            for refused in self.spool.refused().values()
            if refused.sweep_id == lease.sweep_id and refused.kind != CONFLICT
        ]
        runs = "1 run" if len(reasons) == 1 else f"{len(reasons)} runs"
        return f"the server did not take {runs}, which the agent keeps: {reasons[0]}" if reasons else None


def _with_clock(finished: RunFinished, offset: ClockOffset | None) -> RunFinished:
    """Put into a run how the device's clock stood to the server's when it began; a failed run has no conditions."""
    conditions = finished.run.conditions
    if conditions is None:
        return finished
    return replace(finished, run=replace(finished.run, conditions=replace(conditions, clock_offset=offset)))


def _sentence(error: Exception) -> str:
    text = str(error).rstrip(".")
    return f"{text[:1].upper()}{text[1:]}."
