"""powerlab beside a real Prometheus: both are given, and give back, the same samples; what is printed is of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bench.service import waveforms
from bench.service.beside_prometheus import blocks, measure, metric_of, show
from powerlab.protocol.chunks import split
from prometheus_server import running_prometheus

pytestmark = pytest.mark.campaign(minutes=0.5)

LATE_NS = np.random.default_rng(0).integers(0, 60_000, 1000)


def recording() -> waveforms.Recording:
    rails = tuple(waveforms.jetson_rails(("GPU", "CPU"), 100, 4.0, LATE_NS))
    counters = tuple(waveforms.xeon_counters(100, 4.0, LATE_NS))
    return waveforms.Recording("small", 100, ((*rails, *counters), rails))


def test_prometheus_has_the_same_samples(tmp_path: Path) -> None:
    shown, origin_ms = recording(), 1_767_225_600_000
    close = shown.runs[0][0].time_ns.copy()
    close[7] = close[6] + 1000
    first = replace(shown.runs[0][0], time_ns=close)
    shown = replace(shown, runs=((first, *shown.runs[0][1:]), shown.runs[1]))
    taken, lost = blocks(shown, tmp_path, origin_ms)
    assert taken > 1000
    assert lost == 1  # what has no millisecond of its own
    config = tmp_path / "prometheus.yml"
    config.write_text("global: {}\n", encoding="utf-8")
    with running_prometheus(config, tmp_path / "data", "--storage.tsdb.retention.time=100y") as prometheus:
        for number, traces in enumerate(shown.runs):
            for trace in traces:
                query = f'{metric_of(trace)}{{run="{number}",rail="{trace.rail.key}"}}[1d]'
                (series,) = prometheus.ask("query", query=query, time=str(origin_ms / 1e3 + 7200))["result"]
                time_s, value = zip(*series["values"], strict=True)
                kept = np.arange(len(trace.value)) != (7 if trace is first else -1)
                assert [float(one) for one in value] == trace.value[kept].tolist()
                moved_ns = np.array(time_s) * 1e9 - origin_ms * 1e6 - trace.time_ns[kept]
                assert np.abs(moved_ns).max() < 501_000


def test_every_home_is_filled_and_asked(capsys: pytest.CaptureFixture[str]) -> None:
    found = measure(recording(), times=3)
    assert list(found) == ["Prometheus", "PostgreSQL", "files"]
    for figures in found.values():
        assert figures.bytes_a_sample > 0
        assert {question: len(times) for question, times in figures.times_ms.items()} == {"window": 3, "whole": 3}
    show(found)
    said = capsys.readouterr().out
    assert "millisecond" in said
    assert "(1.00x)" in said


def test_waveforms_are_those_of_real_readings() -> None:
    found = {trace.rail.name: trace for trace in recording().runs[0]}
    for trace in found.values():
        assert np.all(np.diff(trace.time_ns) > 0)
        assert list(split(trace))
    steps_ma = found["CPU"].value / 19.2e-3
    assert np.allclose(steps_ma, np.round(steps_ma / 10) * 10)
    assert len(np.unique(found["CPU"].value)) > 3
    assert np.all(np.diff(found["package-0"].value) > 0)


def test_how_late_a_sampler_is_is_measured() -> None:
    late_ns = waveforms.lateness_ns(seconds=0.2)
    assert late_ns.min() == 0
    assert 0 < late_ns.max() < 1_000_000
