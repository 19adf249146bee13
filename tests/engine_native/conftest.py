from collections.abc import Iterator

import pytest

from engine_native.graphs import GraphMaker, use_tier
from powerlab.engine.tiers import available_tiers


@pytest.fixture
def maker() -> GraphMaker:
    return GraphMaker()


@pytest.fixture(params=[tier.name for tier in available_tiers()])
def tier(request) -> Iterator[str]:
    with use_tier(request.param):
        yield request.param
