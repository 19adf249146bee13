"""Ring all-reduce: every node ends with the sum of what all began with.

An array is cut into as many chunks as there are nodes. In each of 2 (nodes - 1) rounds every node sends one chunk to
the next and gets one from the one before; in the first half they are added up, in the second handed around
(P. Patarasuk and X. Yuan, Bandwidth optimal all-reduce algorithms, J. Parallel Distrib. Comput. 69(2), 2009).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from powerlab.analysis.scaling.links import Link


def reduced_s(ready_s: NDArray[np.float64], size: float, link: Link) -> NDArray[np.float64]:
    """Return when each node has the sum.

    Args:
        ready_s: when each node has its own array and nothing else to send, shape (nodes,).
        size: of the array, in bytes.
        link: between any node and the next.
    """
    nodes, at_s = ready_s.size, ready_s
    each_s = link.seconds(size / nodes)
    for _ in range(2 * (nodes - 1)):
        at_s = np.maximum(at_s, np.roll(at_s, 1)) + each_s
    return at_s
