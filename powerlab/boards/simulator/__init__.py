"""Simulated boards: a directory that looks like a board's ``/``, and a process that moves its sensors.

    with simulated_board("jetson-agx-xavier") as sysroot:
        ...                                        # probe, set modes, record: as on the board itself

A board is made of parts (``parts/``), each with a table in the board's file; what they show follows from one physical
model (``physics.py``) of the board's settings and load. The worker that runs an engine calls
``pace = pacer(sysroot, threads)`` once and wraps each inference in ``with pace.inference(work):``. On a real machine
that does nothing; on a simulated board it waits as long as the model says, and nothing is computed (``pace.computes``).
"""

from powerlab.boards.simulator.pacers import pacer
from powerlab.boards.simulator.pacing import NO_WORK, Pacer
from powerlab.boards.simulator.physics import Work
from powerlab.boards.simulator.process import simulated_board
from powerlab.boards.simulator.tree import create_tree

__all__ = ["NO_WORK", "Pacer", "Work", "create_tree", "pacer", "simulated_board"]
