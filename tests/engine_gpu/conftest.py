"""Tests on the GPU that Vulkan's loader knows: in CI a processor that stands in for one (lavapipe)."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from powerlab.domain.errors import PowerlabError
from powerlab.engine.gpu.device import devices, this_target

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "engine"))
sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))


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
