"""Bounds of the fuzzing process: how much memory it may take."""

from __future__ import annotations

import importlib.util
import os
import re
import resource
import sys
from pathlib import Path

NATIVE_VARIABLE = "POWERLAB_FUZZ_NATIVE"
"""Environment variable with the path of another build of the native core, one with sanitizers."""

ROOM = 2**30
"""Bytes the engine may take beyond what the process has already."""


def virtual_bytes():
    return 1024 * int(re.search(r"VmSize:\s+(\d+)", Path("/proc/self/status").read_text())[1])


def bounded(room=ROOM):
    """Let this process allocate ``room`` bytes more, and no more."""
    if "asan" in os.environ.get("LD_PRELOAD", ""):
        return
    limit = virtual_bytes() + room
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def with_other_native_core():
    """Let the engine use the native core that the environment names, if it names one; before the engine is imported."""
    path = os.environ.get(NATIVE_VARIABLE)
    if not path:
        return
    name = "powerlab.native._native"
    spec = importlib.util.spec_from_file_location(name, path)
    sys.modules[name] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
