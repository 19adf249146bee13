"""In CI a skipped test fails the run, unless the processor lacks the instructions that it needs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TESTS = """
import pytest
from requires import needs_instructions

{mark}
def test_skipped():
    raise AssertionError
"""

LACKING = "1 test(s) skipped: this processor has no instructions for bfloat16 (1)."


@pytest.mark.parametrize(
    ("mark", "ci", "code", "said"),
    [
        ('@needs_instructions(False, "bfloat16")', "true", 0, LACKING),
        ('@pytest.mark.skip(reason="no time")', "true", 1, "1 skipped test(s) count as a failure"),
        ('@pytest.mark.skip(reason="no time")', "", 0, "1 skipped"),
        ('@pytest.mark.parametrize("nothing", [])', "true", 1, "1 skipped test(s) count as a failure"),
    ],
)
def test_what_may_be_skipped_in_ci(tmp_path, mark, ci, code, said):
    file = tmp_path / "test_one.py"
    file.write_text(TESTS.format(mark=mark).replace("def test_skipped()", f"def test_skipped({argument(mark)})"))
    paths = os.pathsep.join((str(ROOT / "tests"), str(ROOT / "tests" / "support")))
    found = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            *("-q", "-p", "xdist", "-n", "1", "-p", "conftest"),
            *("-c", os.devnull, "--rootdir", str(tmp_path), str(file)),
        ],
        env={**os.environ, "CI": ci, "PYTHONPATH": paths, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == code, found.stdout + found.stderr
    assert said in found.stdout


def argument(mark: str) -> str:
    """Return the argument that a parametrized test takes."""
    return "nothing" if "nothing" in mark else ""
