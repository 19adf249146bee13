"""Whole networks drawn at random give what ONNX Runtime gives, on every tier this processor has."""

from __future__ import annotations

import numpy as np
import pytest
from engine_models import load_bytes, random_inputs, relative_error, run_ort
from hypothesis import given, settings
from hypothesis import strategies as st
from random_networks import Network, random_networks

from powerlab.engine import Session
from powerlab.engine.passes import optimise
from powerlab.engine.target.tiers import TIER_VARIABLE, available_tiers

TOLERANCE = 2e-4
"""Random networks lose more to cancellation than trained ones; a wrong channel or pixel is off by 1e-1 and more."""


@pytest.mark.parametrize("tier", [tier.name for tier in available_tiers()])
@settings(max_examples=60, deadline=None)
@given(data=random_networks(), threads=st.integers(1, 3))
def test_a_random_network_gives_what_onnx_runtime_gives(tier, data, threads):
    loaded = load_bytes(data)
    inputs = random_inputs(loaded)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(TIER_VARIABLE, tier)
        session = Session(optimise(loaded), threads=threads)
    assert session.tier == tier
    found = session.run(inputs)
    assert relative_error(found, run_ort(data, inputs)) < TOLERANCE
    session.poison()
    again = session.run(inputs)
    assert all(np.array_equal(found[name], again[name]) for name in found)


def test_a_network_wired_wrong_would_be_seen():
    """The judge itself: one channel's weights swapped in the smallest network is far above the tolerance."""
    network = Network((1, 3, 8, 8), 0)
    weights = network.constant(4, 3, 3, 3)
    network.add("Conv", ["x", weights], (1, 4, 8, 8), pads=(1, 1, 1, 1))
    right = network.bytes(())
    network.constants[weights] = network.constants[weights][:, [1, 0, 2]]
    wrong = network.bytes(())
    inputs = random_inputs(load_bytes(right))
    assert relative_error(Session(optimise(load_bytes(wrong))).run(inputs), run_ort(right, inputs)) > 100 * TOLERANCE
