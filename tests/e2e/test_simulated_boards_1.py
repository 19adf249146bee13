"""A whole sweep over every third simulated board, from number 1 on; see the checks for what is asked of it."""

from __future__ import annotations

import json

import pytest

from e2e import board_sweeps
from e2e.golden_boards import AT_RELEASES, DESCRIBED, GOLDEN, described, simulated, swept, variants

board = board_sweeps.swept(swept()[0::3])

test_the_board_says_of_itself_what_its_golden_file_says = (
    board_sweeps.check_the_board_says_of_itself_what_its_golden_file_says
)
test_every_run_has_all_figures_and_all_are_simulated = (
    board_sweeps.check_every_run_has_all_figures_and_all_are_simulated
)
test_power_is_the_boards_own_formula = board_sweeps.check_power_is_the_boards_own_formula
test_the_capped_board_is_slower = board_sweeps.check_the_capped_board_is_slower
test_the_capped_board_takes_less = board_sweeps.check_the_capped_board_takes_less
test_the_board_is_left_as_it_was = board_sweeps.check_the_board_is_left_as_it_was


def test_no_golden_file_is_left_over():
    assert {path.stem for path in GOLDEN.glob("*.json")} == set(variants())


@pytest.mark.parametrize(
    "variant", [*DESCRIBED, *(pytest.param(one, marks=pytest.mark.campaign) for one in AT_RELEASES)]
)
def test_a_board_that_is_not_always_swept_says_of_itself_what_its_golden_file_says(variant, tmp_path, shared_powerlab):
    with simulated(variant, tmp_path) as tree:
        doctor = json.loads(shared_powerlab("doctor", "--sysroot", tree, "--json").stdout)
    assert described(doctor) == json.loads((GOLDEN / f"{variant}.json").read_text())
