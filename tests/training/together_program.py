"""What each process of a group does: trains a small network on its part of each batch, and writes what it learnt.

    together_program.py FOLDER [dies]

Each process writes a file of its own: mpirun mixes long lines that several processes print.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import numpy as np

from powerlab.engine.ir.graph import Graph, Node, TensorInfo
from powerlab.engine.ir.shapes import infer
from powerlab.engine.training import TrainingSession
from powerlab.engine.training.together import MpiGroup

STEPS = 4


def network(count: int) -> Graph:
    """Return a convolution and a linear layer for ``count`` images."""
    random = np.random.default_rng(7)
    constants = {
        "w": random.standard_normal((3, 2, 3, 3)).astype(np.float32) / 4,
        "b": np.zeros(3, np.float32),
        "v": random.standard_normal((27, 4)).astype(np.float32) / 5,
    }
    nodes = [
        Node("Conv", "conv", ("x", "w", "b"), ("c",)),
        Node("Tanh", "tanh", ("c",), ("t",)),
        Node("Flatten", "flat", ("t",), ("f",)),
        Node("MatMul", "linear", ("f", "v"), ("y",)),
    ]
    return infer("small", nodes, [TensorInfo("x", (count, 2, 5, 5))], ["y"], constants)


def batch(step: int) -> tuple[np.ndarray, np.ndarray]:
    """Return eight images and their labels."""
    random = np.random.default_rng(step)
    return random.standard_normal((8, 2, 5, 5)).astype(np.float32), random.integers(0, 4, 8)


def main() -> None:
    """Train as one of two processes."""
    group = MpiGroup()
    session = TrainingSession(network(4), optimizer="adam", threads=1, group=group)
    own = slice(4 * group.rank, 4 * group.rank + 4)
    dies = sys.argv[2:] == ["dies"] and group.rank == 1
    if dies:
        session.step(*(array[own] for array in batch(0)))
        os.kill(os.getpid(), signal.SIGKILL)
    losses = [session.step(*(array[own] for array in batch(step))) for step in range(STEPS)]
    weights = {name: value.tolist() for name, value in session.weights().items()}
    Path(sys.argv[1], f"{group.rank}.json").write_text(json.dumps({"losses": losses, "weights": weights}))


if __name__ == "__main__":
    main()
