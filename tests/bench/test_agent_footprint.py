"""An idle agent is small; how little processor time it takes, the benchmark measures over a minute."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.measuring.agent_footprint import BOUND_MB, idle_agent, memory_mb

pytestmark = pytest.mark.campaign(minutes=0.5)


def test_an_idle_agent_fits_into_its_bound(tmp_path: Path) -> None:
    with idle_agent(tmp_path) as agent:
        memory = memory_mb(agent)
    assert 5 < memory["pss"] <= memory["rss"] <= BOUND_MB
