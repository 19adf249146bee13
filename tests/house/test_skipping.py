"""In CI a skipped test fails the run, unless the processor lacks the instructions that it needs."""

from __future__ import annotations

import pytest

from nested_pytest import nested_pytest

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
    found = nested_pytest(tmp_path, "-q", str(file), ci=ci)
    assert found.returncode == code, found.stdout + found.stderr
    assert said in found.stdout


def argument(mark: str) -> str:
    """Return the argument that a parametrized test takes."""
    return "nothing" if "nothing" in mark else ""
