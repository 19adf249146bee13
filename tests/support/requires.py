"""What a test needs from the system: looked for, skipped with a reason on a user's machine, demanded in CI."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import NoReturn

import pytest

from powerlab.domain.power import Availability
from powerlab.modes.knobs.cpu_quota import cgroup
from powerlab.modes.knobs.cpu_quota.knob import CpuQuota
from powerlab.sysroot import Sysroot

LACKED = "this processor has no instructions for"
"""How the only reason begins for which a test may be skipped in CI."""


def needs_instructions(there: bool, what: str) -> pytest.MarkDecorator:
    """Return a mark that skips a test of kernels for what a processor may lack, such as ``bfloat16``."""
    return pytest.mark.skipif(not there, reason=f"{LACKED} {what}")


def require_program(name: str, package: str) -> str:
    """Return the path of a program; where it is missing, skip the test, or fail it when ``CI`` is set."""
    path = shutil.which(name)
    if path is None:
        missing(f"{name} is not installed (Debian: apt install {package})")
    return path


def require_chromium() -> str:
    """Return the path of Chromium; the one without windows where both are, for it takes half the processor time."""
    return shutil.which("chromium-headless-shell") or require_program("chromium", "chromium-headless-shell")


def require_control_group() -> Path:
    """Return where powerlab's control group of this machine lies, there or not, as :func:`require_program` does."""
    probe, found = CpuQuota().probe(Sysroot()), cgroup.find(Sysroot())
    if found is None or probe.availability is not Availability.AVAILABLE:
        missing(f"no control group can be made here ({probe.detail}): {probe.remedy}")
    return Path(found.group)


def missing(reason: str) -> NoReturn:
    """Skip the calling test with a reason, or fail it in CI, where nothing may be skipped."""
    if os.environ.get("CI"):
        pytest.fail(f"in CI nothing is skipped: {reason}")
    pytest.skip(reason)
