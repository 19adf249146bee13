"""A whole sweep over every third simulated board, from number 3 on; see the checks for what is asked of it."""

from __future__ import annotations

from e2e import board_sweeps
from e2e.golden_boards import swept

board = board_sweeps.swept(swept()[2::3])

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
