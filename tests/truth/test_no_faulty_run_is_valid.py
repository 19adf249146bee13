"""Whatever goes wrong while a run is recorded, some rule says so; and none says anything of a good run."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from powerlab.domain.power import POWER_QUANTITIES
from powerlab.domain.run import Verdict
from powerlab.domain.validity import worst_verdict
from powerlab.measure.validity import judge
from tests.truth.faults import FAULTS, lively_machine, lively_of
from tests.truth.harness import FOCUSES, draw_machine

RUNS = 12


@cache
def recording_of(quantity, seed):
    return lively_machine(seed, quantity).record(seed)


@pytest.mark.parametrize(
    ("name", "quantity"), [(name, quantity) for name, (_, quantities) in FAULTS.items() for quantity in quantities]
)
def test_a_fault_is_seen(name, quantity):
    fault, _ = FAULTS[name]
    for seed in range(RUNS):
        evidence = fault(recording_of(quantity, seed), np.random.default_rng(seed))
        assert worst_verdict(judge(evidence)) in {Verdict.FLAGGED, Verdict.VOID}, seed


@pytest.mark.parametrize("focus", FOCUSES)
def test_a_good_run_is_valid(focus):
    for seed in range(25):
        recording = draw_machine(seed, focus).record(seed)
        assert judge(recording.evidence()) == (), seed


@pytest.mark.parametrize("quantity", POWER_QUANTITIES)
def test_a_good_run_of_lively_sensors_is_valid(quantity):
    for seed in range(RUNS):
        recording = recording_of(quantity, seed)
        assert judge(recording.evidence(lively=lively_of(recording))) == (), seed
