"""Sweeps of commands have workers that are forks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from forked_workers import forked_workers


@pytest.fixture(scope="module", autouse=True)
def _forked_workers() -> Iterator[None]:
    """Spare each run the start of a Python; the worker's own tests have real ones (``tests/measure/worker``)."""
    with forked_workers():
        yield
