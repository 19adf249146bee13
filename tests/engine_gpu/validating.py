"""Vulkan's validation layers, synchronisation included, around what is computed in this process."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from powerlab.engine.gpu.device import library, opened

SYNCHRONISATION = {"VK_LAYER_ENABLES": "VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT"}
NEWER_SYNCHRONISATION = {"VK_LAYER_VALIDATE_SYNC": "1", "VK_LAYER_SYNCVAL_SHADER_ACCESSES_HEURISTIC": "1"}
"""What newer layers, those of ``scripts/newest_lavapipe``, want instead: else they look at no buffer of a shader."""


def installed() -> bool:
    """Tell whether the layers are here; in CI they are."""
    folder = Path(os.environ.get("VK_LAYER_PATH", "/usr/share/vulkan/explicit_layer.d"))
    return bool(os.environ.get("CI")) or (folder / "VkLayer_khronos_validation.json").exists()


@contextmanager
def layers() -> Iterator[None]:
    """Let whoever opens a device meanwhile open it under the layers, which write to the standard output."""
    newer = "POWERLAB_LAUNCHER" in os.environ
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VK_INSTANCE_LAYERS", "VK_LAYER_KHRONOS_validation")
        for name, value in (NEWER_SYNCHRONISATION if newer else SYNCHRONISATION).items():
            patch.setenv(name, value)
        _reopen()
        yield
    _reopen()


def said(capture: pytest.CaptureFixture[str]) -> str:
    """Return what was written to the file descriptors, also what C's library still holds."""
    ctypes.CDLL(None).fflush(None)
    return "".join(capture.readouterr())


def _reopen() -> None:
    """Let the next model open loader and device anew."""
    opened.cache_clear()
    library.cache_clear()
