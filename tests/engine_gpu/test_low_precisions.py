"""All of the zoo in 16 bits and in bytes on a GPU, against the processor."""

from __future__ import annotations

import pytest
from comparing import LARGE, SMALL, agrees

from powerlab.domain.errors import PowerlabError
from powerlab.engine import Session

HALF, BYTES = 1e-2, 2e-2
"""Of the largest number: sums in float32 of numbers with 11 bits, against fp32; and bytes against the processor's."""


@pytest.mark.parametrize("name", SMALL)
def test_a_network_in_16_bits_is_near(name):
    agrees(name, precision="fp16", tolerance=HALF)


@pytest.mark.parametrize("name", [name for name in SMALL if name != "lstm2"])
def test_a_network_in_bytes_gives_the_processor_s(name):
    agrees(name, precision="int8", reference="int8", tolerance=BYTES)


def test_a_network_without_layers_in_bytes_is_refused():
    with pytest.raises(PowerlabError, match="'lstm2' has no layer that computes with integers"):
        Session("lstm2", device="gpu", precision="int8")


@pytest.mark.campaign(minutes=3)
@pytest.mark.parametrize("name", LARGE)
def test_a_large_network_in_16_bits_is_near(name):
    agrees(name, precision="fp16", tolerance=HALF)


@pytest.mark.campaign(minutes=3)
@pytest.mark.parametrize("name", LARGE)
def test_a_large_network_in_bytes_gives_the_processor_s(name):
    agrees(name, precision="int8", reference="int8", tolerance=BYTES)
