import fcntl
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine_native.graphs import GraphMaker, use_tier
from engine_native.kernel_program import ROOT, arm_options, build, require_compiler
from powerlab.engine.target.tiers import available_tiers


@pytest.fixture
def maker() -> GraphMaker:
    return GraphMaker()


@pytest.fixture(params=[tier.name for tier in available_tiers()])
def tier(request) -> Iterator[str]:
    with use_tier(request.param):
        yield request.param


@pytest.fixture(scope="session")
def kernels() -> Path:
    """The stand-alone kernel test, with the kernels of every tier of this processor's family.

    It lies where ``make check`` compiles them with the same flags, which takes minutes.
    """
    require_compiler()
    return _built("check")


@pytest.fixture(scope="session")
def arm_kernels() -> Path:
    """The same for 64-bit Arm."""
    return _built("kernels-arm", *arm_options())


def _built(name: str, *options: str) -> Path:
    """Build in a folder that is kept and that pytest's processes share: who comes second finds nothing left to do."""
    folder = ROOT / "build" / name
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "tests.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return build(folder, *options)
