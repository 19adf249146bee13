"""Tests on the GPU that Vulkan's loader knows: in CI a processor that stands in for one (lavapipe)."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from powerlab.domain.errors import PowerlabError
from powerlab.engine.gpu.device import devices

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "engine"))
sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))


@pytest.fixture(scope="session", autouse=True)
def _gpu():
    try:
        found = devices()
    except PowerlabError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))
    assert found
