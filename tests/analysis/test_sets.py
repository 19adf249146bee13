"""Sets of runs: points that match are paired, a whole is the mean of its points, and nothing is won by chance."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest

from powerlab.analysis.blocks import blocks_of
from powerlab.analysis.comparison import compare
from powerlab.analysis.set_wording import mixtures
from powerlab.analysis.sets import RunSet, common_places, compare_sets
from powerlab.analysis.verdict import Decision
from powerlab.domain.errors import PowerlabError
from powerlab.domain.quantity import Provenance
from powerlab.domain.run import Verdict
from tests.analysis.paired_runs import point, sweep

RATE, POWER = "throughput_img_per_s", "power_w"
ENGINES = ("builtin", "onnxruntime", "openvino")


def of(runs, label, device="board"):
    return RunSet(label=label, runs=tuple(runs), devices=frozenset({(device, False)}))


def engines(factors, *, threads=(1, 2, 4), **changes):
    """Return a sweep's runs as one set an engine; every engine is so many times as fast as the first."""
    truth = {
        point(count, engine=engine): (100.0 * count**0.8 * factor, 5.0 + count)
        for engine, factor in zip(ENGINES, factors, strict=False)
        for count in threads
    }
    runs = sweep(truth, **changes)
    return [of([run for run in runs if run.point.workload.engine == one], one) for one in ENGINES[: len(factors)]]


def test_points_match_but_for_what_the_sets_are_selected_by():
    found = compare_sets(engines((1.0, 1.2)), RATE, ["engine"])
    (beside,) = found.against
    assert [(m.one.point.threads, m.other.point.threads) for m in beside.matches] == [(1, 1), (2, 2), (4, 4)]
    assert {m.one.point.workload.engine for m in beside.matches} == {"onnxruntime"}
    assert all(m.ratio.paired and m.claimed for m in beside.matches)
    assert beside.whole.low < 1.2 < beside.whole.high
    assert beside.whole.paired is True


def test_the_winner_beats_all_other_sets_over_the_points_in_common():
    found = compare_sets(engines((1.0, 1.3, 1.15), repeats=5), RATE, ["engine"])
    assert found.standing.decision is Decision.WINNER
    assert found.labels == ("onnxruntime", "openvino", "builtin")
    assert found.place_count == 3


def test_a_set_that_lacks_a_point_is_compared_over_the_others():
    one, two, three = engines((1.0, 1.2, 1.4))
    three = replace(three, runs=tuple(run for run in three.runs if run.point.threads != 4))
    found = compare_sets([one, two, three], RATE, ["engine"])
    assert [len(beside.matches) for beside in found.against] == [3, 2]
    assert found.place_count == 2


def test_equal_sets_have_a_winner_in_no_more_than_one_of_twenty():
    won = sum(
        compare_sets(
            engines((1.0, 1.0, 1.0), threads=(1, 2), blocks=0.03, seed=seed), RATE, ["engine"]
        ).standing.decision
        is Decision.WINNER
        for seed in range(150)
    )
    assert won / 150 < 0.05


def test_the_whole_holds_the_true_ratio_of_two_sweeps_whose_blocks_move_all_points():
    """Points of a block move together: taken one by one, they would make the whole look far surer than it is."""
    held, truth = 0, {point(n): (100.0, 10.0) for n in (1, 2, 4, 8)}
    for seed in range(200):
        before, after = (sweep(truth, seed=2 * seed + n, sweep_id=str(n), blocks=0.05, repeats=4) for n in (0, 1))
        (beside,) = compare_sets([of(before, "before"), of(after, "after")], RATE).against
        held += beside.whole.low <= 1 <= beside.whole.high
    assert held / 200 > 0.93


def test_a_missing_repeat_leaves_out_its_block():
    one, other = engines((1.0, 1.2), repeats=5)
    other = replace(other, runs=tuple(run for run in other.runs if (run.point.threads, run.repeat) != (2, 1)))
    (beside,) = compare_sets([one, other], RATE, ["engine"]).against
    assert beside.whole.repeat_count == 4


def test_flagged_runs_make_no_set_a_winner():
    one, other = engines((1.0, 1.5))
    flagged = [replace(run, verdict=Verdict.FLAGGED) if run.repeat == 0 else run for run in other.runs]
    found = compare_sets([one, replace(other, runs=tuple(flagged))], RATE, ["engine"])
    assert found.standing.decision is Decision.NOT_ENOUGH_DATA
    assert found.standing.missing_repeats > 0
    assert not any(match.claimed for match in found.against[0].matches)


def test_points_of_several_sweeps_make_a_whole_without_pairs():
    parts = [sweep({point(n): (100.0 * n, 10.0)}, sweep_id=f"s{n}", seed=n) for n in (1, 2)]
    faster = [sweep({point(n): (130.0 * n, 10.0)}, sweep_id=f"f{n}", seed=9 + n) for n in (1, 2)]
    (beside,) = compare_sets([of(parts[0] + parts[1], "a"), of(faster[0] + faster[1], "b")], RATE).against
    assert (beside.whole.paired, beside.whole.repeat_count) == (False, 3)
    assert beside.whole.value == pytest.approx(1.3, rel=0.05)


def test_a_sensor_that_both_sets_share_cancels_in_the_whole():
    def far(device):
        before = sweep({point(1): (100.0, 10.0), point(2): (150.0, 14.0)}, gain_bound=0.1, scatter=0.002, sweep_id="b")
        after = sweep({point(1): (100.0, 10.6), point(2): (150.0, 14.9)}, gain_bound=0.1, scatter=0.002, sweep_id="a")
        (beside,) = compare_sets([of(before, "before"), of(after, "after", device)], POWER).against
        return beside

    assert far("board").claimed is True
    assert far("another").claimed is False


def test_provenances_stand_side_by_side_and_decide_nothing():
    before = sweep({point(1): (100.0, 10.0)}, sweep_id="before")
    after = sweep({point(1): (100.0, 5.0)}, sweep_id="after", provenance=Provenance.SIMULATED)
    found = compare_sets([of(before, "before"), of(after, "after")], POWER)
    assert found.against[0].whole is None
    assert found.standing.decision is Decision.NOT_ENOUGH_DATA


def test_sets_without_a_common_point_say_so():
    before, after = sweep({point(1): (100.0, 10.0)}), sweep({point(2): (100.0, 10.0)})
    assert common_places([of(before, "a"), of(after, "b")]) == 0
    assert common_places([of(before, "a"), of(after, "b")], ["threads"]) == 1
    assert compare_sets([of(before, "a"), of(after, "b")], RATE).standing is None


def test_a_set_with_several_points_in_one_place_is_refused():
    (one,) = engines((1.0,))
    with pytest.raises(PowerlabError, match=r"several points of builtin are alike; .*builtin:threads=VALUE"):
        compare_sets([one, one], RATE, ["threads"])


def test_one_place_is_the_plain_comparison():
    runs = sweep({point(1): (100.0, 10.0), point(2): (120.0, 10.0)}, repeats=4)
    one, other = ([run for run in runs if run.point.threads == n] for n in (1, 2))
    found = compare(blocks_of({(): one}, RATE), blocks_of({(): other}, RATE), RATE)
    assert found == compare(one, other, RATE)


def test_a_block_is_the_geometric_mean_of_its_runs():
    chance = random.Random(1)
    truth = {point(n): (chance.uniform(10, 100), 10.0) for n in (1, 2, 4)}
    runs = sweep(truth, scatter=0.0)
    places = {(str(place.threads),): [run for run in runs if run.point == place] for place in truth}
    expected = math.prod(rate for rate, _ in truth.values()) ** (1 / 3)
    assert [block.metric(RATE).value for block in blocks_of(places, RATE)] == pytest.approx([expected] * 3)
    assert blocks_of({}, RATE) == []


def test_sets_with_a_run_in_common_are_refused():
    slow, _ = engines((1.0, 1.2))
    part = of([run for run in slow.runs if run.point.threads == 2], "part")
    with pytest.raises(PowerlabError, match=f"{len(part.runs)} runs of builtin are in part, too"):
        compare_sets([slow, part], RATE)


def test_a_set_of_several_devices_says_that_its_figures_mix_them():
    one, two = engines((1.0, 1.2))
    both = replace(two, devices=frozenset({("orin", False), ("nano", True)}))
    assert list(mixtures([one, two])) == []
    (said,) = mixtures([one, both])
    assert said.startswith("onnxruntime has runs of 2 devices (nano, orin), and its figures are over all of them;")
