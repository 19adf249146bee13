"""The kernel test under the sanitizers of undefined behaviour and of threads.

What is undefined stands in the lines that all tiers are compiled from, and threads are the same for every instruction
set: the narrowest is compiled soonest.
"""

import pytest

from engine_native.sanitizing import assert_clean
from powerlab.engine.target.tiers import available_tiers

pytestmark = pytest.mark.campaign(minutes=6)


def test_kernels_do_nothing_that_c_leaves_undefined(tmp_path):
    assert_clean(tmp_path, "undefined", available_tiers()[-1].name)


def test_plans_and_their_threads_race_for_nothing(tmp_path):
    assert_clean(tmp_path, "thread", available_tiers()[-1].name, "threads")
