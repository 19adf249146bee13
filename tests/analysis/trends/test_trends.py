"""Trends: series by device, point and metric, their changes, and what else changed then."""

from __future__ import annotations

from dataclasses import replace

import pytest

from powerlab.analysis.trends.trends import trends
from powerlab.analysis.trends.versions import Difference, differences, versions
from tests.analysis.gate_sweeps import POINT, series
from tests.analysis.paired_runs import point

RATE, TIME = "throughput_img_per_s", "latency_p50_ms"
OLD, NEW = {"kernel": "5.10.104", "l4t": "R35.2.1"}, {"kernel": "5.10.120", "l4t": "R35.4.1"}


def test_a_change_has_a_size_a_place_and_a_reason():
    days = series(20, conditions=OLD, name="old")
    later = series(12, conditions=NEW, name="new", loss=0.05, seed=1)
    later = [[replace(run, started_at=f"2027{run.started_at[4:]}") for run in sweep] for sweep in later]
    found = {trend.metric: trend for trend in trends([("board", sweep) for sweep in [*later, *days]], [RATE, TIME])}
    (change,) = found[RATE].changes
    assert (change.last_before, change.first_after) == ("old-19", "new-0")
    assert change.low < 0.95 < change.high
    assert change.loss == pytest.approx(0.05, abs=0.01)
    assert change.differences == (
        Difference(what="kernel", before="5.10.104", after="5.10.120"),
        Difference(what="JetPack (L4T)", before="R35.2.1", after="R35.4.1"),
    )
    (slower,) = found[TIME].changes
    assert slower.ratio == pytest.approx(1 / change.ratio)
    assert slower.loss > 0


def test_devices_and_points_have_series_of_their_own():
    both = series(3, points=[point(1), point(2)])
    found = trends([*(("one", sweep) for sweep in both), *(("two", sweep) for sweep in both)], [RATE])
    assert [(trend.device, trend.point.threads, len(trend.values)) for trend in found] == [
        ("one", 1, 3),
        ("one", 2, 3),
        ("two", 1, 3),
        ("two", 2, 3),
    ]


def test_versions_of_a_model_are_one_series_whose_change_is_the_version():
    def of(digest, **words):
        place = replace(POINT, workload=replace(POINT.workload, model=f"net@sha256:{digest * 64}"))
        return series(8, points=[place], **words)

    later = [
        [replace(run, started_at=f"2027{run.started_at[4:]}") for run in sweep]
        for sweep in of("b", seed=1, loss=0.1, name="new")
    ]
    (trend,) = trends([("board", sweep) for sweep in [*of("a"), *later]], [RATE])
    (change,) = trend.changes
    assert [str(one) for one in change.differences] == ["model net: net@aaaaaaaaaaaa → net@bbbbbbbbbbbb"]
    assert trend.point.workload.model.endswith("b")


def test_few_sweeps_have_no_change_and_say_how_many_it_takes():
    (trend,) = trends([("board", sweep) for sweep in series(4)], [RATE])
    assert trend.changes == ()
    assert trend.fewest_values == 10


def test_versions_that_nobody_tells_are_unknown():
    (known,), (unknown,) = series(1, conditions=OLD), series(1)
    assert "kernel" not in versions(unknown)
    assert Difference(what="kernel", before="unknown", after="5.10.104") in differences(
        versions(unknown), versions(known)
    )
    assert differences(versions(known), versions(known)) == ()


def test_series_too_short_for_a_change_do_not_hide_one():
    long = [*series(12, name="old"), *series(12, name="new", loss=0.1, seed=1)]
    dated = [
        [replace(run, started_at=f"2027-01-{day:02}T00:00:00+00:00") for run in sweep]
        for day, sweep in enumerate(long, start=1)
    ]
    many = series(2, points=[point(threads) for threads in range(2, 200)], name="short")
    found = trends([*(("board", sweep) for sweep in dated), *(("other", sweep) for sweep in many)], [RATE])
    assert len(found) > 150
    assert [len(trend.changes) for trend in found if trend.device == "board"] == [1]


def test_values_have_the_interval_of_their_repeats():
    (trend,) = trends([("board", sweep) for sweep in series(3)], [RATE])
    for one in trend.values:
        assert one.low < one.value < one.high
    lonely = [[sweep[0]] for sweep in series(3)]
    (trend,) = trends([("board", sweep) for sweep in lonely], [RATE])
    assert {(one.low, one.high) for one in trend.values} == {(None, None)}
