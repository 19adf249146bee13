"""Real worker processes that crash, are killed, hang and talk nonsense."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time

import numpy as np
import psutil
import pytest

from powerlab.domain.errors import PowerlabError
from powerlab.domain.workload import Workload
from powerlab.measure.worker.messages import Load, Measure, Ready, Timed
from powerlab.measure.worker.process import Worker, WorkerError

CORES = frozenset(sorted(os.sched_getaffinity(0))[:1])

pytestmark = pytest.mark.usefixtures("fakes")


def load_of(model: str, batch_size: int = 1) -> Load:
    workload = Workload(model=model, batch_size=batch_size)
    return Load(backend_module="numpy_backend", workload=workload, threads=1, sysroot="/", seed=7)


def measured(model: str, patience_s: float = 20.0):
    with Worker(CORES, patience_s=patience_s) as worker:
        worker.load(load_of(model))
        worker.warm_up(0)
        return worker.measure(Measure(duration_s=0.05, min_inferences=12, margin_s=0.0))


@pytest.mark.parametrize("model", ["good", "chatty"])
def test_every_inference_of_the_window_is_timed(model):
    timed = measured(model)
    assert timed.count >= 12
    assert np.all(timed.end_ns > timed.start_ns)
    assert np.all(timed.start_ns[1:] >= timed.end_ns[:-1])
    assert timed.window_ns[1] - timed.window_ns[0] >= 0.05e9 * 0.9
    assert np.all(timed.end_ns - timed.start_ns >= 1e6)


def test_at_least_the_minimum_of_inferences_is_made_however_short_the_window():
    with Worker(CORES) as worker:
        worker.load(load_of("good"))
        worker.warm_up(0)
        assert worker.measure(Measure(duration_s=1e-6, min_inferences=5, margin_s=0.0)).count == 5


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("crash", "ended with exit code 3; its last words: the engine stepped on a rake"),
        ("segfault", "was killed by SIGSEGV"),
        ("killed", r"was killed by SIGKILL \(the kernel does that when memory runs out\)"),
        ("memory", "the engine failed in the worker: MemoryError: cannot allocate 7.5 GiB"),
        ("garbage", "answered with garbage: no message is that long"),
        ("nonsense", "answered with garbage"),
    ],
)
def test_a_worker_that_dies_or_babbles_is_explained(model, words):
    with pytest.raises(WorkerError, match=words):
        measured(model)


def test_a_worker_that_hangs_and_ignores_sigterm_is_stopped():
    with Worker(CORES, patience_s=0.3) as worker:
        pid = worker.pid
        worker.load(load_of("hang"))
        worker.warm_up(0)
        with pytest.raises(WorkerError, match=r"did not answer within .* s and was stopped"):
            worker.measure(Measure(duration_s=0.01, min_inferences=5, margin_s=0.0))
    assert not psutil.pid_exists(pid)


def test_a_worker_killed_from_outside_while_idle_is_explained():
    with Worker(CORES) as worker:
        worker.load(load_of("good"))
        os.kill(worker.pid, signal.SIGKILL)
        with pytest.raises(WorkerError, match="SIGKILL"):
            worker.warm_up(0)


def test_what_the_user_can_mend_is_a_powerlab_error():
    with Worker(CORES) as worker, pytest.raises(PowerlabError, match="'unreadable' cannot be read"):
        worker.load(load_of("unreadable"))


def test_a_crash_while_loading_is_explained():
    with Worker(CORES) as worker, pytest.raises(WorkerError, match="exit code 9"):
        worker.load(load_of("dies-loading"))


def test_the_worker_runs_on_its_cores_alone_and_the_parent_keeps_its_own():
    before = os.sched_getaffinity(0)
    with Worker(CORES) as worker, pytest.raises(WorkerError, match=rf"cores \[{next(iter(CORES))}\]"):
        worker.load(load_of("affinity"))
    assert os.sched_getaffinity(0) == before


def test_the_callers_own_mask_is_never_written(monkeypatch):
    """The mask that can be read leaves out cores a power mode holds offline; writing it back would lose them."""
    writers = []
    honest = os.sched_setaffinity

    def spy(pid, mask):
        writers.append(threading.get_native_id() if pid == 0 else pid)
        honest(pid, mask)

    monkeypatch.setattr(os, "sched_setaffinity", spy)
    with Worker(CORES):
        pass
    assert writers
    assert threading.get_native_id() not in writers


def test_cores_that_do_not_exist_are_refused_in_words():
    with pytest.raises(WorkerError, match=r"could not be started on cores \[100000\]"):
        Worker(frozenset({100_000}))


def test_measuring_before_loading_is_an_answer_not_a_crash():
    with Worker(CORES) as worker, pytest.raises(WorkerError, match="no model is loaded"):
        worker.warm_up(0)


def test_no_process_and_no_descriptor_is_left_behind():
    def open_descriptors() -> set[str]:
        return set(os.listdir("/proc/self/fd"))

    before, others = open_descriptors(), set(psutil.Process().children())
    for model in ("good", "crash", "garbage"):
        with contextlib.suppress(WorkerError):
            measured(model)
    assert open_descriptors() == before
    assert set(psutil.Process().children()) <= others, "other tests' servers may run on; no worker may"


def test_a_worker_that_waits_for_queries_is_ended_at_once():
    """At one query in 200 s it sleeps nearly all the time; nobody waits for the next one."""
    asked = Measure(duration_s=600.0, min_inferences=3, margin_s=0.0, queries_per_s=0.005, arrival_seed=(1,))
    with Worker(CORES) as worker:
        process = psutil.Process(worker.pid)
        worker.load(load_of("good"))
        worker.warm_up(0)
        waiting = threading.Thread(target=ask_in_vain, args=(worker, asked))
        waiting.start()
        while process.status() != psutil.STATUS_SLEEPING or not worker._busy:
            time.sleep(0.01)
        os.kill(worker.pid, signal.SIGTERM)
        waiting.join(timeout=60)
        assert not waiting.is_alive()
    assert not process.is_running()


def ask_in_vain(worker: Worker, asked: Measure) -> None:
    with contextlib.suppress(WorkerError):
        worker.measure(asked)


def test_a_worker_with_slices_ends_between_two_inferences():
    sliced = Workload(model="good", batch_size=4, slices=4)
    request = Load(backend_module="numpy_backend", workload=sliced, threads=4, sysroot="/", seed=7)
    with Worker(CORES) as worker:
        worker.load(request)
        worker.warm_up(0)
        asked = Measure(duration_s=600.0, min_inferences=3, margin_s=0.0)
        busy = threading.Thread(target=ask_in_vain, args=(worker, asked))
        busy.start()
        while not worker._busy:
            time.sleep(0.01)
        os.kill(worker.pid, signal.SIGTERM)
        busy.join(timeout=60)
        assert not busy.is_alive()


@pytest.mark.parametrize(
    ("asked", "least_s"),
    [
        pytest.param(Measure(duration_s=2.0, min_inferences=1, margin_s=0.5), 3.0, id="a duration"),
        pytest.param(Measure(duration_s=0.1, min_inferences=200, margin_s=0.0), 200 * 0.25, id="slow queries"),
        pytest.param(
            Measure(duration_s=0.1, min_inferences=200, margin_s=0.0, queries_per_s=0.5), 200 / 0.5, id="rare queries"
        ),
    ],
)
def test_a_worker_has_ten_times_as_long_as_what_it_is_asked_for_takes(monkeypatch, asked, least_s):
    given = []

    def answered(self, request, timeout_s, expected):
        given.append(timeout_s)
        if expected is Ready:
            return Ready(inference_s=0.25)
        return Timed(start_ns=np.array([1], "<i8").tobytes(), end_ns=np.array([2], "<i8").tobytes())

    monkeypatch.setattr(Worker, "_ask", answered)
    with Worker(CORES, patience_s=7.0) as worker:
        worker.warm_up(0)
        worker.measure(asked)
    assert given[-1] == pytest.approx(10 * least_s + 7.0)
