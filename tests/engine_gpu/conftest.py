"""Tests on the GPU that Vulkan's loader knows: in CI a processor that stands in for one (lavapipe)."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from powerlab.domain.errors import PowerlabError
from powerlab.engine.gpu.device import devices, this_target

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "engine"))
sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

import validating

# Kernels are many here and compute little: lavapipe takes a sixth less of the time without optimising them. It reads
# this when it is loaded.
os.environ.setdefault("GALLIVM_PERF", "nopt")

UNDER_LAYERS = (
    *(
        "test_as_gpu",
        "test_attention",
        "test_byte_volumes",
        "test_bytes",
        "test_gradients",
        "test_low_precisions",
        "test_matrices",
        "test_methods",
        "test_networks",
    ),
    *("test_operators", "test_products", "test_random_networks", "test_training", "test_transposed", "test_validation"),
    *("test_volumes", "test_whole_numbers"),
)
"""Modules that compute in this process under Vulkan's validation layers, which must have nothing to say."""


def _offers_matrices():
    try:
        return bool(this_target().matrices)
    except PowerlabError:
        return False


# Debian's driver has no cooperative matrices, and in CI nothing is skipped; elsewhere these tests are, with a reason.
collect_ignore = ["test_matrices.py"] if os.environ.get("CI") and not _offers_matrices() else []


@pytest.fixture(scope="session", autouse=True)
def _gpu():
    try:
        found = devices()
    except PowerlabError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))
    assert found


@pytest.fixture(scope="module", autouse=True)
def _layers(request: pytest.FixtureRequest) -> Iterator[None]:
    if request.path.stem in UNDER_LAYERS and validating.installed():
        with validating.layers():
            yield
    else:
        yield


@pytest.fixture(autouse=True)
def _silent_layers(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail the test whose work the layers complain of."""
    capture = request.getfixturevalue("capfd") if request.path.stem in UNDER_LAYERS else None
    yield
    if capture is not None:
        said = validating.said(capture)
        assert "Validation" not in said, said
