import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine_native.graphs import GraphMaker, use_tier
from engine_native.kernel_program import arm_options, build, require_compiler
from powerlab.engine.tiers import available_tiers


@pytest.fixture
def maker() -> GraphMaker:
    return GraphMaker()


@pytest.fixture(params=[tier.name for tier in available_tiers()])
def tier(request) -> Iterator[str]:
    with use_tier(request.param):
        yield request.param


@pytest.fixture(scope="session")
def kernels(tmp_path_factory) -> Path:
    """The stand-alone kernel test, with the kernels of every tier of this processor's family."""
    require_compiler()
    return _built_once(tmp_path_factory, "kernels")


@pytest.fixture(scope="session")
def arm_kernels(tmp_path_factory) -> Path:
    """The same for 64-bit Arm."""
    return _built_once(tmp_path_factory, "arm-kernels", *arm_options())


def _built_once(tmp_path_factory, name: str, *options: str) -> Path:
    """Build in a folder all of pytest's processes share: whoever comes second finds nothing left to do."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    with open(folder / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return build(folder / name, *options)
