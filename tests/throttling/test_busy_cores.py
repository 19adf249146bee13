"""Which processors were busy between two looks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.throttling.busy_cores import BUSY_SHARE, busy_between, parse_ticks, read_ticks

STAT = """\
cpu  100 0 50 800 20 5 5 20 0 0
cpu0 60 0 20 400 10 5 5 0 0 0
cpu12 40 0 30 400 10 0 0 20 7 3
intr 1234 5 6
ctxt 42
"""


def test_ticks_are_read_for_each_processor_and_the_sum_is_left_out():
    assert parse_ticks(STAT) == {0: (90, 500), 12: (70, 500)}


def test_the_short_lines_of_old_kernels_are_read():
    assert parse_ticks("cpu0 10 1 9 80\n") == {0: (20, 100)}


def test_a_hypervisors_share_is_no_work():
    assert parse_ticks("cpu0 10 0 0 0 0 0 0 90 0 0") == {0: (10, 100)}


def test_a_processor_is_busy_that_was_at_work_nearly_all_the_time():
    before = {0: (100, 1000), 1: (100, 1000), 2: (100, 1000), 3: (5, 5)}
    after = {0: (120, 1020), 1: (117, 1020), 2: (118, 1020), 4: (20, 20)}
    assert busy_between(before, after) == {0, 2}


def test_no_time_passed_and_time_that_ran_backwards_are_no_work():
    assert busy_between({0: (5, 10)}, {0: (5, 10)}) == frozenset()
    assert busy_between({0: (5, 10)}, {0: (3, 6)}) == frozenset()


def test_a_kernel_that_shows_nothing_has_no_processors(tree):
    assert read_ticks(tree({})) == {}
    assert read_ticks(tree({"/proc/stat": STAT})) == {0: (90, 500), 12: (70, 500)}


@given(st.text(max_size=300))
def test_any_text_may_stand_in_the_file(text):
    for work, total in parse_ticks(text).values():
        assert 0 <= work <= total


@pytest.mark.parametrize("line", ["cpu0", "cpu0 ", "cpu0 1 x 3", "cpu-1 1 2 3 4", "cpux 1 2 3 4", "cpu0 1,5 2"])
def test_lines_of_another_form_are_left_out(line):
    assert parse_ticks(line) == {}


@given(
    work=st.integers(0, 10**6),
    idle=st.integers(0, 10**6),
    more_work=st.integers(0, 1000),
    more_idle=st.integers(0, 1000),
)
def test_busy_is_a_question_of_the_share_alone(work, idle, more_work, more_idle):
    before, after = f"cpu3 {work} 0 0 {idle}", f"cpu3 {work + more_work} 0 0 {idle + more_idle}"
    passed = more_work + more_idle
    expected = passed > 0 and more_work >= BUSY_SHARE * passed
    assert (3 in busy_between(parse_ticks(before), parse_ticks(after))) == expected
