"""All of the zoo in 16 bits and in bytes on a GPU, against the processor."""

from __future__ import annotations

import numpy as np
import pytest
from comparing import LARGE, SMALL, agrees, bytes_layer_by_layer

from powerlab.domain.errors import PowerlabError
from powerlab.engine import Session
from powerlab.engine.prepared import prepared

pytestmark = pytest.mark.campaign

HALF, BYTES = 1e-2, 1e-6
"""Of the largest number: sums in float32 of numbers with 11 bits, against fp32; and bytes against the processor's."""


@pytest.fixture
def whole_numbers(monkeypatch):
    """Keep the processor from floats where they are faster: they make another byte of one in a thousand."""
    monkeypatch.setattr(prepared, "with_faster_floats", lambda graph, tier: graph)


@pytest.mark.parametrize("name", SMALL)
def test_a_network_in_16_bits_is_near(name):
    agrees(name, precision="fp16", tolerance=HALF)


@pytest.mark.usefixtures("whole_numbers")
@pytest.mark.parametrize("name", [name for name in SMALL if name not in {"lstm2", "vit-tiny"}])
def test_a_network_in_bytes_gives_the_processor_s(name):
    agrees(name, precision="int8", reference="int8", tolerance=BYTES)


@pytest.mark.usefixtures("whole_numbers")
def test_bytes_behind_functions_are_the_processor_s_but_for_ties():
    """A last bit of an exponential makes another byte of one in 10,000, which the layers behind it would spread."""
    found = bytes_layer_by_layer("vit-tiny")
    assert len(found) > 50
    for gpu_s, processor_s in found.values():
        apart = np.abs(gpu_s - processor_s)
        assert apart.max() <= 1
        assert np.count_nonzero(apart) <= max(1, 1e-4 * apart.size)


def test_a_network_without_layers_in_bytes_is_refused():
    with pytest.raises(PowerlabError, match="'lstm2' has no layer that computes with integers"):
        Session("lstm2", device="gpu", precision="int8")


@pytest.mark.campaign(minutes=3)
@pytest.mark.parametrize("name", LARGE)
def test_a_large_network_in_16_bits_is_near(name):
    agrees(name, precision="fp16", tolerance=HALF)


@pytest.mark.usefixtures("whole_numbers")
@pytest.mark.campaign(minutes=3)
@pytest.mark.parametrize("name", LARGE)
def test_a_large_network_in_bytes_gives_the_processor_s(name):
    agrees(name, precision="int8", reference="int8", tolerance=BYTES)
