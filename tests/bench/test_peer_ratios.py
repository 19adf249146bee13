"""Paired ratios and what follows from all cells."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.peers.ratios import OURS, Cell, Measured, paired_ratio, summary

LATENCY = st.floats(min_value=1e-3, max_value=1e3)


def measured(model: str = "net", **turns_ms: list[float]) -> Measured:
    least = {name: min(turns) for name, turns in turns_ms.items()}
    return Measured(
        cell=Cell(model=model, batch_size=1, threads=2),
        turns_ms=turns_ms,
        least_ms=least,
        differences={name: 1e-6 * (place + 1) for place, name in enumerate(turns_ms) if name != OURS},
    )


def test_a_ratio_is_the_peers_time_over_ours():
    assert paired_ratio([2.0, 2.0, 2.0], [3.0, 3.0, 3.0]).median == 1.5


def test_turns_of_the_same_round_are_paired():
    """A machine that is slow for half of the time changes times by half and ratios not at all."""
    slow = [1.6 if place % 3 else 1.0 for place in range(30)]
    ratio = paired_ratio([10 * s for s in slow], [12 * s for s in slow])
    assert ratio.low == pytest.approx(1.2)
    assert ratio.median == pytest.approx(1.2)
    assert ratio.high == pytest.approx(1.2)


def test_one_round_that_went_wrong_does_not_move_the_median():
    ratio = paired_ratio([1.0] * 9, [1.1] * 8 + [50.0])
    assert ratio.median == pytest.approx(1.1)


def test_quartiles_are_those_of_the_ratios():
    ratio = paired_ratio([1.0] * 5, [5.0, 1.0, 3.0, 2.0, 4.0])
    assert (ratio.low, ratio.median, ratio.high) == (2.0, 3.0, 4.0)


def test_a_single_round_has_no_spread():
    ratio = paired_ratio([2.0], [3.0])
    assert (ratio.low, ratio.median, ratio.high) == (1.5, 1.5, 1.5)


@pytest.mark.parametrize(("ours", "theirs"), [([], []), ([1.0], []), ([1.0, 2.0], [1.0])])
def test_turns_that_are_no_pairs_are_refused(ours, theirs):
    with pytest.raises(ValueError, match=r"no round|argument"):
        paired_ratio(ours, theirs)


@given(st.lists(st.tuples(LATENCY, LATENCY), min_size=2, max_size=20), st.floats(min_value=0.1, max_value=10))
def test_a_machine_slower_by_any_factor_changes_no_ratio(pairs, factor):
    ours, theirs = zip(*pairs, strict=True)
    before = paired_ratio(ours, theirs)
    after = paired_ratio([factor * x for x in ours], [factor * x for x in theirs])
    assert before.low <= before.median <= before.high
    assert after.median == pytest.approx(before.median)


def test_the_best_peer_is_the_one_nearest_to_us_or_before_us():
    one = measured(builtin=[2.0, 2.0], slow=[9.0, 9.0], fast=[1.8, 1.8], middle=[2.2, 2.2])
    assert set(one.ratios) == {"slow", "fast", "middle"}
    peer, ratio = one.best
    assert peer == "fast"
    assert ratio.median == pytest.approx(0.9)
    assert one.rounds == 2


def test_without_our_turns_there_is_no_ratio():
    one = measured(fast=[1.8, 1.8])
    assert one.ratios == {}
    assert one.best is None
    assert summary([one]) is None


def test_the_geometric_mean_is_over_each_cells_best_peer():
    cells = [
        measured("one", builtin=[1.0], a=[2.0], b=[8.0]),
        measured("two", builtin=[1.0], a=[9.0], b=[0.5]),
        measured("three", builtin=[1.0], a=[8.0]),
    ]
    found = summary(cells)
    assert found.cells == 3
    assert found.geometric_mean == pytest.approx(2.0)
    assert (found.smallest.model, found.smallest_peer, found.smallest_ratio.median) == ("two", "b", 0.5)


def test_a_cell_with_nothing_to_compare_does_not_count():
    cells = [measured("one", builtin=[1.0], a=[4.0]), measured("two", builtin=[1.0]), measured("three")]
    found = summary(cells)
    assert found.cells == 1
    assert found.geometric_mean == pytest.approx(4.0)
    assert cells[2].rounds == 0


def test_no_cell_at_all_says_nothing():
    assert summary([]) is None


def test_the_largest_difference_is_over_all_cells_and_peers():
    assert summary(
        [measured(builtin=[1.0], a=[4.0]), measured(builtin=[1.0], a=[4.0], b=[3.0])]
    ).largest_difference == (pytest.approx(3e-6))


def test_the_mean_of_ratios_and_of_their_inverses_agree():
    generator = random.Random(3)
    ratios = [generator.uniform(0.5, 2.0) for _ in range(21)]
    forth = summary([measured(builtin=[1.0], a=[ratio]) for ratio in ratios]).geometric_mean
    back = summary([measured(builtin=[ratio], a=[1.0]) for ratio in ratios]).geometric_mean
    assert forth * back == pytest.approx(1.0)
    assert math.log(forth) == pytest.approx(sum(map(math.log, ratios)) / len(ratios))


def test_a_cell_says_what_it_is():
    assert str(Cell(model="resnet50", batch_size=8, threads=2)) == "resnet50 batch 8 threads 2"
