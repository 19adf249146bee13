"""All of the zoo in 16 bits and in bytes on a GPU, against the processor."""

from __future__ import annotations

import pytest
from comparing import LARGE, SMALL, agrees

from powerlab.domain.errors import PowerlabError
from powerlab.engine import Session
from powerlab.engine.prepared import prepared

pytestmark = pytest.mark.campaign

HALF, BYTES = 1e-2, 1e-6
"""Of the largest number: sums in float32 of numbers with 11 bits, against fp32; and bytes against the processor's."""

FUNCTIONS_BETWEEN = 2e-2
"""Where exponentials lie between bytes: a last bit makes another byte of some, and layers behind it spread that."""


@pytest.fixture
def whole_numbers(monkeypatch):
    """Keep the processor from floats where they are faster: they make another byte of one in a thousand."""
    monkeypatch.setattr(prepared, "with_faster_floats", lambda graph, tier: graph)


@pytest.mark.parametrize("name", SMALL)
def test_a_network_in_16_bits_is_near(name):
    agrees(name, precision="fp16", tolerance=HALF)


@pytest.mark.usefixtures("whole_numbers")
@pytest.mark.parametrize("name", [name for name in SMALL if name != "lstm2"])
def test_a_network_in_bytes_gives_the_processor_s(name):
    tolerance = FUNCTIONS_BETWEEN if name == "vit-tiny" else BYTES
    agrees(name, precision="int8", reference="int8", tolerance=tolerance)


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
