"""What Vulkan's validation layers, synchronisation included, say of a program."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

LAYER = "VK_LAYER_KHRONOS_validation"
SYNCHRONISATION = {"VK_LAYER_ENABLES": "VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT"}
NEWER_SYNCHRONISATION = {"VK_LAYER_VALIDATE_SYNC": "1", "VK_LAYER_SYNCVAL_SHADER_ACCESSES_HEURISTIC": "1"}
"""What newer layers, those of ``scripts/newest_lavapipe``, want instead: else they look at no buffer of a shader."""


def said(program, *words):
    """Return what a process says that runs a program under the layers."""
    folder = Path(os.environ.get("VK_LAYER_PATH", "/usr/share/vulkan/explicit_layer.d"))
    if not list(folder.glob("VkLayer_khronos_validation.json")) and not os.environ.get("CI"):
        pytest.skip("Vulkan's validation layers are not installed (Debian: vulkan-validationlayers)")
    launcher = shlex.split(os.environ.get("POWERLAB_LAUNCHER", ""))
    settings = NEWER_SYNCHRONISATION if launcher else SYNCHRONISATION
    environment = {**os.environ, "VK_INSTANCE_LAYERS": LAYER, **settings}
    command = [*launcher, sys.executable, "-c", program, *words]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr
