"""Transposes, reshapes, slices and splits between layers: wherever a tensor lies, it is read right."""

from __future__ import annotations

from engine_models import check_runs, load_bytes, random_inputs, run_ort
from hypothesis import given, settings
from moving_networks import moving_networks

from powerlab.engine.passes import optimise

TOLERANCE = 5e-3
"""Sums that cancel may lose so much; a wrong tensor is off by 1e-1 and more."""


@settings(max_examples=300)
@given(moving_networks())
def test_tensors_are_read_right_wherever_they_lie(network):
    graph = load_bytes(network)
    inputs = random_inputs(graph)
    check_runs(optimise(graph), inputs, run_ort(network, inputs), TOLERANCE)
