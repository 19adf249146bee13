"""Another device than the first one of a cluster: it loads, steps and records whenever the first one says so."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace

from powerlab import __version__
from powerlab.domain.errors import PowerlabError
from powerlab.domain.phase import RunPhase
from powerlab.domain.preflight import check_plan
from powerlab.domain.sweep import SweepPlan
from powerlab.measure.heat.guard import HeatGuard, TooHotError
from powerlab.measure.recording.background_load import BackgroundLoad
from powerlab.measure.recording.rails import Meter
from powerlab.measure.recording.rails import Recording as RailRecording
from powerlab.measure.recording.temperature import Thermometer
from powerlab.measure.run import load_request, worker_cores
from powerlab.measure.worker.process import Worker, WorkerError
from powerlab.modes.knobs.cpu_quota.knob import join
from powerlab.sweep.cluster.link import (
    Begin,
    Clock,
    Done,
    End,
    Finish,
    Hello,
    Link,
    LinkError,
    Message,
    Now,
    Record,
    Recording,
    Samples,
)
from powerlab.sweep.cooling import Cooled, wait_until_cool
from powerlab.sweep.host import Host
from powerlab.sweep.meter import calibrated_meter, choose_meter, watch_s, watched_meter
from powerlab.throttling.guard import Guard


def follow_cluster(plan: SweepPlan, host: Host, address: str, key: str, stop: threading.Event) -> None:
    """Follow the first device until it closes the connection, or ``stop`` is set.

    Args:
        plan: the sweep's.
        host: this device.
        address: where the first device listens, ``HOST:PORT``.
        key: the cluster's secret.
        stop: ends it.

    Raises:
        LinkError: the first device cannot be reached, or does not know the key.
        PowerlabError: the plan cannot be carried out here.
    """
    name, _, port = address.rpartition(":")
    try:
        link = Link(socket.create_connection((name, int(port)), timeout=10), key)
    except (OSError, ValueError) as error:
        raise LinkError(f"{address} cannot be reached ({error})") from error
    over = threading.Event()

    def close_on_stop() -> None:
        while not over.is_set():
            if stop.wait(0.5):
                link.close()
                return

    watch = threading.Thread(target=close_on_stop, name="cluster-stop", daemon=True)
    watch.start()
    try:
        held, meter = _prepared(plan, host)
        with _Member(held, host, meter, link, stop) as member:
            member.serve()
    except PowerlabError as error:
        with contextlib.suppress(LinkError):
            link.send(Done(failure=f"{host.device().name}: {error}"))
        raise
    except LinkError:
        return  # the sweep is over, or the first device is gone
    finally:
        over.set()
        link.close()
        watch.join()


def _nothing() -> Recording:
    failure = "nothing was recorded"
    return Recording(rails=(), zones=(), throttled=(), failure=failure, drift=None, background_cores=None)


def _prepared(plan: SweepPlan, host: Host) -> tuple[SweepPlan, Meter]:
    """Return the plan, held to this device's limits, and how its power is read."""
    host.controller.recover()
    capabilities = host.capabilities(plan.modes)
    check_plan(plan, host.device(), capabilities)
    chosen = choose_meter(host.sysroot, capabilities, plan.sample_period_s, plan.processors)
    watched = watched_meter(chosen, watch_s(plan.duration_s))
    return plan.held_to(host.temperature_limits), calibrated_meter(watched, chosen.rails, host.device())


class _Member:
    """What another device has open between two requests."""

    def __init__(self, plan: SweepPlan, host: Host, meter: Meter, link: Link, stop: threading.Event) -> None:
        self._plan, self._host, self._meter, self._link, self._stop = plan, host, meter, link, stop
        self._run, self._recording = ExitStack(), ExitStack()
        self._following: threading.Thread | None = None
        self._failure, self._mode, self._ending = "", "", False
        self._worker: Worker | None = None
        self._finish: Callable[[], Recording] = _nothing

    def __enter__(self) -> _Member:
        return self

    def __exit__(self, *_: object) -> None:
        self._recording.close()
        self._end()

    def serve(self) -> None:
        """Answer requests until the connection ends."""
        total = self._meter.total
        self._link.send(
            Hello(
                name=self._host.device().name,
                version=__version__,
                rails=tuple(self._meter.rails),
                scope="" if total is None else total.scope,
                lively=dict(self._meter.lively),
            )
        )
        while True:
            self._link.send(self._answer(self._link.receive(None)))

    def _answer(self, request: Message) -> Message:
        match request:
            case Clock():
                return Now(time_ns=time.monotonic_ns())
            case Begin():
                return Done(failure=self._begin(request))
            case Record():
                return Done(failure=self._record())
            case Finish():
                return self._finish()
            case End():
                return Done(failure=self._end())
            case _:
                raise LinkError(f"it asks for {type(request).__name__}")

    def _begin(self, request: Begin) -> str:
        """Load, meet the others and follow; returns why that cannot be."""
        self._failure, self._mode, self._ending = "", request.point.mode, False
        place = replace(request.place, host=self._link.peer)
        self._host.announce(RunPhase.LOADING, None)
        refusal = self._cooled().refusal
        if refusal is not None:
            return refusal.sentence
        try:
            self._run.enter_context(self._host.controller.applied(self._mode))
            worker = self._run.enter_context(Worker(worker_cores(request.point)))
            self._run.enter_context(HeatGuard(self._meter.sysroot, self._plan.temperature_limits, worker.kill))
            join(self._meter.sysroot, worker.pid)
            worker.load(load_request(request.point, self._meter, self._plan.seed, self._host.model_files, place))
        except (PowerlabError, WorkerError) as error:
            return self._closed() or str(error)
        self._worker = worker
        self._following = threading.Thread(target=self._follow, args=(worker,), name="cluster-follow", daemon=True)
        self._following.start()
        return ""

    def _cooled(self) -> Cooled:
        waiting = wait_until_cool(self._host.sysroot, self._plan, self._stop)
        while True:
            try:
                next(waiting)
            except StopIteration as end:
                cooled: Cooled = end.value
                return cooled

    def _follow(self, worker: Worker) -> None:
        try:
            worker.follow()
        except (PowerlabError, WorkerError) as error:
            if not self._ending:
                self._failure = str(error)

    def _record(self) -> str:
        self._host.announce(RunPhase.TIMED, None)
        self._recording.close()
        sysroot = self._meter.sysroot
        pids = () if self._worker is None else (self._worker.pid,)
        background = None if sysroot.simulated else BackgroundLoad(*pids)
        guard = self._recording.enter_context(Guard(sysroot))
        thermometer = self._recording.enter_context(Thermometer(sysroot))
        recording = self._recording.enter_context(RailRecording(self._meter))

        def finish() -> Recording:
            cores = None if background is None else background.cores()
            rails, throttled, zones = recording.finish(), guard.finish(), thermometer.finish()
            self._recording.close()
            self._host.announce(RunPhase.WARM_UP, None)
            return Recording(
                rails=tuple(map(Samples.of, rails)),
                zones=tuple(map(Samples.of, zones)),
                throttled=throttled,
                failure=recording.failure,
                drift=self._host.controller.drifted(self._mode) if self._worker is not None else None,
                background_cores=cores,
            )

        self._finish = finish
        return ""

    def _end(self) -> str:
        """End the worker, restore the power mode, and return why the run broke off here, if it did."""
        self._ending = not self._failure
        if self._worker is not None and self._following is not None:
            self._worker.kill()
            self._following.join()
        self._following = self._worker = None
        return self._closed() or self._failure

    def _closed(self) -> str:
        """Close what a run has open; returns what keeps that from being orderly."""
        try:
            self._run.close()
        except (TooHotError, PowerlabError) as error:
            return str(error)
        finally:
            with contextlib.suppress(RuntimeError):
                self._host.announce(RunPhase.BETWEEN, None)
        return ""
