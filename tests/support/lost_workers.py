"""Workers that end in the middle of a test: how their process ended, and what it was at, said at once.

Without this the report says at the very end which test it was, and nothing says by which signal.
"""

from __future__ import annotations

import signal
import subprocess
from typing import Any

import pytest

_PATIENCE_S = 20.0
"""A worker whose pipe is closed may take so long to end."""


class LostWorkers:
    """Says what is known of a worker that was lost; a plugin of the process that reports."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object | None) -> None:
        """Say how the process of a worker ended that did not end in order."""
        if error is not None:
            self._say(f"worker {node.gateway.id} {how_it_ended(node.gateway._io.popen)}")

    @pytest.hookimpl(optionalhook=True)
    def pytest_handlecrashitem(self, crashitem: str) -> None:
        """Say which test a lost worker was at."""
        self._say(f"it was at {crashitem}")

    def _say(self, line: str) -> None:
        reporter = self._config.pluginmanager.get_plugin("terminalreporter")
        reporter.write_line(f"\n{line}")


def how_it_ended(process: subprocess.Popen[bytes]) -> str:
    """Return in words how a process ended that nobody talks to any more."""
    try:
        status = process.wait(_PATIENCE_S)
    except subprocess.TimeoutExpired:
        return "has closed its pipe and goes on"
    return f"was ended by {signal.Signals(-status).name}" if status < 0 else f"ended with exit status {status}"
