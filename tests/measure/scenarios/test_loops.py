"""Queries one after the other and as they arrive, on a clock that moves only when somebody sleeps or works."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.measure.scenarios import loops
from powerlab.measure.scenarios.loops import arrivals, back_to_back, timed_window
from powerlab.measure.scenarios.server_search import latencies_s
from powerlab.measure.worker.messages import Measure


class Worker:
    """A clock, and queries that take the times they are given, in turn."""

    def __init__(self, *answer_ns: int) -> None:
        self.now_ns = 7_000_000_000
        self.slept: list[tuple[int, int]] = []
        self._answer_ns = itertools.cycle(answer_ns)
        self.answered = 0

    def monotonic_ns(self) -> int:
        return self.now_ns

    def sleep(self, seconds: float) -> None:
        assert seconds > 0
        begin_ns, self.now_ns = self.now_ns, self.now_ns + round(seconds * 1e9)
        self.slept.append((begin_ns, self.now_ns))

    def answer(self) -> None:
        self.now_ns += next(self._answer_ns)
        self.answered += 1


@pytest.fixture
def at_work(monkeypatch):
    def install(*answer_ns: int) -> Worker:
        worker = Worker(*answer_ns)
        monkeypatch.setattr(loops, "time", worker)
        return worker

    return install


def server(queries_per_s: float, duration_s: float = 1.0, least: int = 1, margin_s: float = 0.0, seed: int = 0):
    return Measure(
        duration_s=duration_s,
        min_inferences=least,
        margin_s=margin_s,
        queries_per_s=queries_per_s,
        arrival_seed=(seed,),
    )


def test_back_to_back_stops_when_the_time_is_over_and_the_count_is_reached(at_work):
    worker = at_work(10_000_000)
    begin_ns = worker.now_ns
    starts, ends = back_to_back(worker.answer, begin_ns + 95_000_000, min_count=3)
    assert len(starts) == len(ends) == 10
    assert list(starts) == [begin_ns + 10_000_000 * number for number in range(10)]
    assert len(back_to_back(worker.answer, worker.now_ns, min_count=3)[0]) == 3
    assert len(back_to_back(worker.answer, worker.now_ns, min_count=0)[0]) == 0


def test_a_closed_window_has_load_on_both_sides(at_work):
    worker = at_work(10_000_000)
    begin_ns = worker.now_ns
    starts, ends = timed_window(worker.answer, Measure(duration_s=0.1, min_inferences=1, margin_s=0.05))
    assert starts[0] - begin_ns == 50_000_000
    assert worker.now_ns - ends[-1] == 50_000_000
    assert len(starts) == 10
    assert worker.answered == 20
    assert worker.slept == []


def test_who_comes_while_another_is_answered_waits_and_that_counts(at_work):
    worker = at_work(50_000_000)
    starts, ends = timed_window(worker.answer, server(1000.0, duration_s=0.1))
    assert len(starts) > 50
    latencies_ns = np.array(ends) - np.array(starts)
    assert latencies_ns[-1] > 1_000_000_000, "the queue grows without end, and so does the last one's wait"
    assert np.all(np.diff(ends) == 50_000_000), "the worker is never idle"


def test_arrivals_do_not_wait_for_answers(at_work):
    quick, slow = at_work(1_000), at_work(80_000_000)
    first, _ = timed_window(slow.answer, server(100.0))
    loops.time = quick  # type: ignore[assignment]
    second, _ = timed_window(quick.answer, server(100.0))
    assert list(first) == list(second)


def test_the_worker_sleeps_while_nobody_is_there(at_work):
    worker = at_work(1_000_000)
    starts, ends = timed_window(worker.answer, server(10.0, duration_s=20.0))
    slept_ns = sum(end - begin for begin, end in worker.slept)
    assert slept_ns > 0.95 * (ends[-1] - starts[0])
    assert np.median(np.array(ends) - np.array(starts)) == 1_000_000


@given(
    queries_per_s=st.floats(1.0, 1000.0),
    answer_ns=st.lists(st.integers(1_000, 100_000_000), min_size=1, max_size=7),
    seed=st.integers(0, 1000),
)
def test_latencies_are_those_of_a_queue(queries_per_s, answer_ns, seed):
    """Against Lindley's recursion, which the search for the load uses."""
    worker = Worker(*answer_ns)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loops, "time", worker)
        starts, ends = timed_window(worker.answer, server(queries_per_s, duration_s=0.2, least=3, seed=seed))
    start_ns, end_ns = np.array(starts), np.array(ends)
    service_s = np.resize(np.array(answer_ns) / 1e9, start_ns.size)
    gap_s = np.concatenate(([0.0], np.diff(start_ns) / 1e9))
    assert (end_ns - start_ns) / 1e9 == pytest.approx(latencies_s(gap_s, service_s), abs=1e-6)
    assert np.all(np.diff(start_ns) > 0)
    assert np.all(np.diff(end_ns) > 0)


@given(margin_s=st.floats(0.0, 0.5), least=st.integers(1, 60), queries_per_s=st.floats(5.0, 200.0))
def test_a_window_of_arrivals_is_as_long_as_asked_and_has_load_on_both_sides(margin_s, least, queries_per_s):
    worker = Worker(2_000_000)
    begin_ns = worker.now_ns
    request = server(queries_per_s, duration_s=0.5, least=least, margin_s=margin_s)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loops, "time", worker)
        starts, ends = timed_window(worker.answer, request)
    margin_ns = round(margin_s * 1e9)
    assert starts[0] >= begin_ns + margin_ns
    assert len(starts) >= least
    assert worker.now_ns >= ends[-1] + margin_ns
    every = list(itertools.takewhile(lambda time_ns: time_ns <= starts[-1], arrivals(begin_ns, request)))
    assert [time_ns for time_ns in every if time_ns >= begin_ns + margin_ns] == list(starts), "none is left out"


def test_arrivals_are_a_poisson_process_that_a_seed_repeats():
    request = server(200.0, seed=3)
    times = np.array(list(itertools.islice(arrivals(0, request), 20_000)))
    gaps_s = np.diff(times) / 1e9
    assert gaps_s.mean() == pytest.approx(1 / 200, rel=0.03)
    assert gaps_s.std() == pytest.approx(gaps_s.mean(), rel=0.03)
    assert abs(np.corrcoef(gaps_s[:-1], gaps_s[1:])[0, 1]) < 0.03
    assert np.mean(gaps_s > 1 / 200) == pytest.approx(np.exp(-1), abs=0.02)
    assert list(times[:50]) == list(itertools.islice(arrivals(0, request), 50))
    assert list(times[:50]) != list(itertools.islice(arrivals(0, server(200.0, seed=4)), 50))


def test_arrivals_rise_strictly_however_many_come():
    times = list(itertools.islice(arrivals(0, server(1e12)), 5000))
    assert all(later > earlier for earlier, later in itertools.pairwise(times))


def test_who_still_waits_when_the_margin_is_over_is_sent_home(at_work):
    worker = at_work(50_000_000)
    _, ends = timed_window(worker.answer, server(1000.0, duration_s=0.1, margin_s=0.02))
    assert worker.now_ns - ends[-1] <= 20_000_000 + 50_000_000
