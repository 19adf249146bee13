"""A run of pytest with one worker and these tests' conftest.py, for tests of what that does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

_TESTS = Path(__file__).parents[1]
_PATIENCE_S = 120.0


def nested_pytest(folder: Path, *words: str, ci: str = "true") -> subprocess.CompletedProcess[str]:
    """Run the tests of a folder; ``ci`` is the variable ``CI``.

    Raises:
        subprocess.TimeoutExpired: the run does not end.
    """
    paths = os.pathsep.join((str(_TESTS), str(_TESTS / "support")))
    return subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-p", "xdist", "-n", "1", "-p", "conftest"),
            *("-c", os.devnull, "--rootdir", str(folder), *words),
        ],
        cwd=folder,
        env={**os.environ, "CI": ci, "PYTHONPATH": paths, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=_PATIENCE_S,
    )
