"""Simulated boards: a directory that looks like a board's ``/``, and a process that moves its sensors.

    with simulated_board("jetson-agx-xavier") as sysroot:
        ...                                        # probe, set modes, record: as on the board itself

A board is made of parts (``parts/``), each with a table in the board's file; what they show follows from one physical
model (``physics.py``) of the board's settings and load. The worker that runs an engine calls
``pace = pacer(sysroot, threads)`` once and wraps each inference in ``with pace.inference():``; on a real machine that
does nothing.
"""

from powerlab.boards.simulator.pacing import Pacer, pacer
from powerlab.boards.simulator.process import simulated_board
from powerlab.boards.simulator.tree import create_tree

__all__ = ["Pacer", "create_tree", "pacer", "simulated_board"]
