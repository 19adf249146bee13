"""What runs on the emulated machine: load a model into an engine, run it once, and once more between two marks.

``python arm_inference.py ENGINE MODEL OUTPUTS.npz``: the outputs go into a file, for comparison. The marks are those of
``instruction_counter.cpp``; without that plugin they are system calls that fail.
"""

from __future__ import annotations

import ctypes
import sys

import numpy as np

from powerlab.backends.base import LoadOptions
from powerlab.backends.registry import BACKENDS, load

MARK = 0x706C


def main(engine: str, model: str, out: str) -> None:
    library = ctypes.CDLL(None)
    backend = load(BACKENDS[engine], LoadOptions(model=model, batch_size=1, threads=1))
    inputs = backend.inputs(seed=0)
    backend.run(inputs)
    library.getpriority(MARK, 1)
    outputs = backend.run(inputs)
    library.getpriority(MARK, 0)
    np.savez(out, **outputs)


if __name__ == "__main__":
    main(*sys.argv[1:])
