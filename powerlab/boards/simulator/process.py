"""Starts and stops the process that moves a simulated board's sensors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from powerlab.domain.errors import PowerlabError
from powerlab.sysroot import Sysroot


@contextmanager
def simulated_board(board_name: str) -> Iterator[Sysroot]:
    """Yield the sysroot of a temporary simulated board whose simulator process is running.

    Raises:
        PowerlabError: the board is not known or cannot be simulated.
    """
    raise PowerlabError(f"{board_name} cannot be simulated yet.")
    yield
