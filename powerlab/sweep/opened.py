"""Open the device a sweep runs on, for the command line and the agent."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from powerlab.boards.simulator import simulated_board
from powerlab.state_dir import state_dir
from powerlab.sweep.host import Host
from powerlab.sysroot import Sysroot


@contextmanager
def opened_host(board: str | None = None, root: Path = Path("/"), name: str | None = None) -> Iterator[Host]:
    """Yield a device; its mode journal lies where ``powerlab modes restore`` looks for it.

    Args:
        board: a simulated board, which runs as long as the context is open; None takes the machine below ``root``.
        root: where that machine's file tree begins.
        name: what people call the device; None takes its own name.

    Raises:
        PowerlabError: there is no such board.
    """
    if board is None:
        sysroot = Sysroot(root.absolute())
        yield Host(sysroot=sysroot, state_dir=state_dir(sysroot), name=name)
        return
    with simulated_board(board) as sysroot:
        yield Host(sysroot=sysroot, state_dir=state_dir(sysroot), name=name)
