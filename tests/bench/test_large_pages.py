"""The bench of large pages times the same network with and without them."""

from __future__ import annotations

import pytest

from bench.engine import large_pages

pytestmark = pytest.mark.campaign


def test_a_network_runs_with_and_without() -> None:
    found = large_pages.compare("squeezenet@64", 1, rounds=1)
    assert found.keys() == set(large_pages.KINDS)
    assert all(len(times) == 1 and 0 < times[0] < 60 for times in found.values())
    assert large_pages.line("small", found).startswith("| small | ")
