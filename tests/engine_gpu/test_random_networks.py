"""Networks drawn at random, of images and of what moves tensors, on a GPU beside the processor."""

from __future__ import annotations

import numpy as np
import pytest
from engine_models import load_bytes, random_inputs
from hypothesis import given, settings
from hypothesis import strategies as st
from moving_networks import moving_networks
from random_networks import random_networks

from powerlab.domain.errors import PowerlabError
from powerlab.engine import Session

SMALL = 0.5
"""Numbers that are small are what is left of a cancellation, and may differ more."""


@pytest.mark.parametrize(("precision", "judge", "tolerance"), [("fp32", "fp32", 1e-3), ("fp16", "fp32", 0.02)])
@settings(max_examples=90)
@given(network=st.one_of(moving_networks(), random_networks()))
def test_floats_agree_with_the_processors(tmp_path_factory, precision, judge, tolerance, network):
    path = tmp_path_factory.mktemp("random") / "network.onnx"
    path.write_bytes(network)
    agrees(path, random_inputs(load_bytes(network)), precision, judge, tolerance)


@settings(max_examples=90)
@given(network=st.one_of(moving_networks(), random_networks()))
def test_bytes_agree_with_the_processors_or_are_refused(tmp_path_factory, network):
    path = tmp_path_factory.mktemp("random") / "network.onnx"
    path.write_bytes(network)
    try:
        agrees(path, random_inputs(load_bytes(network)), "int8", "int8", 0.05)
    except PowerlabError as error:
        refused = str(error)
    else:
        refused = ""
    assert not refused or "on a GPU" in refused or "no layer that computes with integers" in refused


def agrees(path, inputs, precision, judge, tolerance):
    expected = Session(path, threads=1, precision=judge).run(inputs)
    found = Session(path, device="gpu", precision=precision).run(inputs)
    for name, one in expected.items():
        assert np.abs(found[name] - one).mean() < tolerance * (SMALL + np.abs(one).max()), name
