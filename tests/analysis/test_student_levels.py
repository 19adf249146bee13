"""Student's t distribution against the table of the GUM and against its closed forms."""

from __future__ import annotations

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from powerlab.domain.statistics import student_95
from powerlab.domain.students_t import two_sided_level


@pytest.mark.parametrize("degrees", [1, 2, 3, 5, 10, 30, 31, 100])
def test_it_agrees_with_the_table_of_the_gum(degrees):
    assert two_sided_level(student_95(degrees), degrees) == pytest.approx(0.05, abs=5e-5)


@given(st.floats(0, 1e6))
@example(9.8e-9)
def test_with_one_and_two_degrees_it_has_a_closed_form(t):
    assert two_sided_level(t, 1) == pytest.approx(2 * math.atan2(1, t) / math.pi, rel=1e-9)
    # Written so that nothing cancels: 1 - t / sqrt(2 + t²).
    root = math.sqrt(2 + t * t)
    assert two_sided_level(t, 2) == pytest.approx(2 / (root * (root + t)), rel=1e-9)


@given(st.floats(0, 1e3), st.floats(1e-3, 1e3), st.floats(0.5, 500))
def test_it_falls_from_one_and_both_sides_are_alike(t, more, degrees):
    assert 0 <= two_sided_level(t + more, degrees) <= two_sided_level(t, degrees) + 1e-12 <= 1 + 1e-11
    assert two_sided_level(-t, degrees) == two_sided_level(t, degrees)
    assert two_sided_level(0, degrees) == 1


def test_the_furthest_values_have_levels_too():
    assert two_sided_level(math.inf, 3) == 0
    assert two_sided_level(1e200, 3) == 0
    assert two_sided_level(40.0, 1e6) == pytest.approx(0, abs=1e-200)


@pytest.mark.parametrize("degrees", [0, -1])
def test_no_degrees_of_freedom_are_refused(degrees):
    with pytest.raises(ValueError, match="degrees of freedom"):
        two_sided_level(1.0, degrees)
