"""Runs begin at phases that are spread over the period of a part-time sensor, and at once where there is none."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from powerlab.domain.power import Rail, RailQuantity
from powerlab.domain.quantity import Provenance
from powerlab.measure.recording.phases import phase_wait_s

ALL_OF_THE_TIME = Rail(
    source="nvml",
    name="GPU0",
    quantity=RailQuantity.POWER,
    resolution=1e-3,
    relative_error=0.05,
    update_period_s=0.1,
    provenance=Provenance.MEASURED,
)
PART_TIME = replace(ALL_OF_THE_TIME, seen_share=0.25)


@given(now_s=st.floats(0, 1e7), repeat=st.integers(0, 100))
def test_nobody_waits_longer_than_a_period(now_s, repeat):
    assert phase_wait_s(now_s, repeat, [ALL_OF_THE_TIME]) == 0
    assert 0 <= phase_wait_s(now_s, repeat, [ALL_OF_THE_TIME, PART_TIME]) <= 0.1


def test_repeats_begin_at_phases_spread_over_the_period():
    now_s = 1234.567
    phases = np.sort([(now_s + phase_wait_s(now_s, repeat, [PART_TIME])) % 0.1 for repeat in range(8)])
    assert np.diff(phases, append=phases[0] + 0.1).max() < 0.022
