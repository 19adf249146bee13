"""All watches together: started, looked at, asked, and none that breaks may break the measurement."""

from __future__ import annotations

import threading
import time
from contextlib import suppress

import pytest

from powerlab.sysroot import Sysroot
from powerlab.throttling.base import WatchProbe
from powerlab.throttling.guard import Guard
from powerlab.throttling.registry import WATCHES

TIMEOUT_S = 120.0
HERE = Sysroot()


class Scripted:
    """A watch that does what it is told and remembers what was asked of it."""

    def __init__(self, name="scripted", sentences=(), breaks="", spin_ns=0):
        self.name, self.sentences, self.breaks, self.spin_ns = name, sentences, breaks, spin_ns
        self.samples = 0
        self.sampled = threading.Event()

    def probe(self, sysroot):
        raise NotImplementedError

    def start(self, sysroot):
        self._break_at("start")
        return self

    def sample(self):
        self._break_at("sample")
        until = time.thread_time_ns() + self.spin_ns
        while time.thread_time_ns() < until:
            pass
        self.samples += 1
        if self.samples >= 3:
            self.sampled.set()

    def finish(self):
        self._break_at("finish")
        return tuple(self.sentences)

    def _break_at(self, moment):
        if self.breaks == moment:
            self.sampled.set()
            raise RuntimeError(f"{moment} went wrong")


def test_watches_are_looked_at_until_they_are_asked():
    watch, other = Scripted(sentences=("it was hot",)), Scripted(sentences=("and slow", "very"))
    with Guard(HERE, (watch, other), 0.001) as guard:
        assert watch.sampled.wait(TIMEOUT_S)
        assert other.sampled.wait(TIMEOUT_S)
        assert guard.finish() == ("it was hot", "and slow", "very")
    looks = watch.samples
    assert guard.finish() == ()
    assert watch.samples == looks


@pytest.mark.parametrize("moment", ["start", "sample", "finish"])
def test_a_watch_that_breaks_is_a_sentence_and_the_others_go_on(moment):
    broken, whole = Scripted("nvml_violations", breaks=moment), Scripted(sentences=("it was hot",))
    with Guard(HERE, (broken, whole), 0.001) as guard:
        assert whole.sampled.wait(TIMEOUT_S)
        assert broken.sampled.wait(TIMEOUT_S)
        said = guard.finish()
    assert "it was hot" in said
    (sentence,) = (text for text in said if text != "it was hot")
    assert sentence.startswith("whether the device was slowed down is known in part only")
    assert f"nvml_violations failed (RuntimeError: {moment} went wrong)" in sentence


def test_a_broken_watch_is_not_asked_again():
    broken, whole = Scripted("one", breaks="sample"), Scripted("two")
    with Guard(HERE, (broken, whole), 0.001) as guard:
        assert whole.sampled.wait(TIMEOUT_S)
        assert len(guard.finish()) == 1
    assert broken.samples == 0


def test_the_thread_ends_when_the_measurement_fails():
    before = threading.active_count()
    with suppress(ValueError), Guard(HERE, (Scripted(),), 3600.0):
        assert threading.active_count() == before + 1
        raise ValueError
    assert threading.active_count() == before


def test_looking_has_a_price_that_is_counted():
    watch = Scripted(spin_ns=5_000_000)
    begin_s = time.monotonic()
    with Guard(HERE, (watch,), 0.001) as guard:
        assert watch.sampled.wait(TIMEOUT_S)
        guard.finish()
    elapsed_s = time.monotonic() - begin_s
    assert 0.99 * watch.samples * 0.005 / elapsed_s <= guard.core_share <= 1.0


def test_on_this_machine_every_watch_runs_and_says_only_sentences():
    with Guard(HERE, look_period_s=0.01) as guard:
        time.sleep(0.05)
        said = guard.finish()
    assert not any("failed" in sentence for sentence in said)


def test_every_watch_has_a_name_and_answers_for_an_empty_machine(tree):
    empty = tree({})
    probes = [watch.probe(empty) for watch in WATCHES]
    assert [probe.watch for probe in probes] == [watch.name for watch in WATCHES]
    assert len({watch.name for watch in WATCHES}) == len(WATCHES)
    assert all(isinstance(probe, WatchProbe) and probe.detail for probe in probes)
