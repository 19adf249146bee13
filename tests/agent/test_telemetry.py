"""What people watch costs no figure: in quiet phases nothing is read or sent, and a bad server holds nothing up."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise

import pytest

from powerlab.domain.phase import QUIET, RunPhase
from powerlab.domain.sweep import SweepPlan
from powerlab.protocol.readings import ReadingsReply, ReadingsUpload, Snapshot
from powerlab.sweep.events import RunFinished, RunStarted
from powerlab.sweep.opened import opened_host
from powerlab.sweep.runner import run_sweep
from powerlab_agent.client import RefusedError, ServerUnreachableError
from powerlab_agent.device_reader import opened_reader
from powerlab_agent.telemetry import Telemetry
from server_examples import PLAN

WAIT_S = 120.0


class Recorder:
    """A server and a device that note when they are asked, on CLOCK_MONOTONIC in ns."""

    def __init__(self, period_s: float = 0.5) -> None:
        self.period_s = period_s
        self.busy_ns: list[tuple[int, int]] = []
        self.phases: list[RunPhase] = []
        self.readings = 0
        self.sent = threading.Condition()
        self.error: Exception | None = None
        self.streaming: list[bool] = []

    def send_readings(self, message: ReadingsUpload) -> ReadingsReply:
        began_ns = time.monotonic_ns()
        with self.sent:
            self.readings += len(message.readings)
            if message.phase is not None:
                self.phases.append(message.phase.phase)
            self.sent.notify_all()
        self.busy_ns.append((began_ns, time.monotonic_ns()))
        if self.error is not None:
            raise self.error
        return ReadingsReply(period_s=self.period_s)

    def snapshot(self) -> Snapshot:
        now_ns = time.monotonic_ns()
        self.busy_ns.append((now_ns, now_ns))
        return Snapshot(mode="current")

    @contextmanager
    def opened(self, streaming: bool) -> Iterator[Recorder]:
        self.streaming.append(streaming)
        yield self

    def wait_for_readings(self, count: int) -> None:
        with self.sent:
            assert self.sent.wait_for(lambda: self.readings >= count, WAIT_S)


@pytest.mark.campaign
def test_nothing_is_read_or_sent_while_a_run_is_timed() -> None:
    recorder = Recorder()
    plan = SweepPlan(
        models=("mobilenetv2",),
        threads=(1,),
        duration_s=1.5,
        warm_up_s=0.6,
        longest_warm_up_s=0.6,
        cool_down_s=0.0,
        idle_s=0.6,
        repeats=3,
    )
    with opened_host("jetson-agx-xavier") as host:

        @contextmanager
        def opened(streaming: bool) -> Iterator[object]:
            with opened_reader(host, streaming=streaming) as reader:

                class Noting:
                    def snapshot(self) -> Snapshot:
                        began_ns = time.monotonic_ns()
                        seen = reader.snapshot()
                        recorder.busy_ns.append((began_ns, time.monotonic_ns()))
                        return seen

                yield Noting()

        with Telemetry(recorder, opened) as telemetry:
            recorder.wait_for_readings(1)
            host.announce = telemetry.announce
            windows = []
            with telemetry.job("s"):
                for event in run_sweep(plan, "s", host):
                    telemetry.note(event)
                    if isinstance(event, RunFinished) and event.run.inference_count:  # a busy machine may fail one
                        windows.append(event.run.window_ns)
            recorder.wait_for_readings(recorder.readings + 1)
    assert windows
    for window in windows:
        disturbing = [one for one in recorder.busy_ns if one[1] >= window[0] and one[0] <= window[1]]
        assert not disturbing
    assert [one for one in recorder.busy_ns if one[0] > windows[0][1]], "after it the device is shown"
    assert recorder.phases[0] is RunPhase.PREPARING
    assert recorder.phases.count(RunPhase.TIMED) >= len(windows)
    assert (RunPhase.TIMED, RunPhase.IDLE) in set(pairwise(recorder.phases))


def test_a_quiet_phase_begins_when_what_was_going_on_is_over() -> None:
    recorder = Recorder()
    with Telemetry(recorder, recorder.opened) as telemetry, telemetry.job("s"):
        for phase in QUIET:
            telemetry.announce(RunPhase.WARM_UP, None)
            recorder.wait_for_readings(recorder.readings + 1)
            telemetry.announce(phase, 1.0)
            before = len(recorder.busy_ns)
            assert recorder.phases[-1] is phase
            assert len(recorder.busy_ns) == before
    assert recorder.streaming[:2] == [True, False], "sources that serve one reader are left to the sweep"


def test_a_server_that_does_not_answer_holds_no_run_up() -> None:
    recorder, asked, answer = Recorder(), threading.Event(), threading.Event()

    class Hanging:
        def send_readings(self, message: ReadingsUpload) -> ReadingsReply:
            if message.phase is not None and message.phase.phase is RunPhase.TIMED:
                asked.set()
                answer.wait(WAIT_S)
            return recorder.send_readings(message)

    with Telemetry(Hanging(), recorder.opened) as telemetry, telemetry.job("s"):
        telemetry.announce(RunPhase.TIMED, 1.0, wait_s=0.01)
        assert asked.wait(WAIT_S)
        assert RunPhase.TIMED not in recorder.phases, "the run goes on although nobody answered"
        answer.set()


def test_a_server_that_is_away_or_refuses_is_left_alone_for_a_while() -> None:
    for error in (ServerUnreachableError("away"), RefusedError("no", "not-found", 404)):
        recorder = Recorder()
        recorder.error = error
        with Telemetry(recorder, recorder.opened) as telemetry:
            recorder.wait_for_readings(1)
            with telemetry.job("s"):
                telemetry.announce(RunPhase.TIMED, 1.0)
        assert recorder.phases == [], "not asked again for every phase"


def test_a_reading_names_the_mode_of_the_run() -> None:
    recorder, seen = Recorder(), []

    class Keeping:
        def send_readings(self, message: ReadingsUpload) -> ReadingsReply:
            seen.extend(one.seen.mode for one in message.readings)
            return recorder.send_readings(message)

    point = PLAN.points()[0]
    with Telemetry(Keeping(), recorder.opened) as telemetry, telemetry.job("s"):
        telemetry.note(RunStarted(point=point, repeat=0, index=1, run_count=1))
        telemetry.announce(RunPhase.WARM_UP, None)
        recorder.wait_for_readings(2)
    assert point.mode in seen
