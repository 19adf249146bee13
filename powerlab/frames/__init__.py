"""Stored results as frames: Arrow tables that become pandas or polars, with units, intervals and provenance.

::

    from powerlab import frames

    points = frames.points("sweep.json").pandas()
    print(points[["threads", "mode", *frames.figure_columns("power_w")]])
    print(frames.best("sweep.json").pandas()["statement"])

A source is a :class:`~powerlab.client.Client` or a server's address, a database (its path or address, or an open
:class:`~powerlab.store.Store`), a results file of ``powerlab profile``, or None for what commands read by default: the
server of POWERLAB_SERVER, else what this machine has measured. It needs the extra ``frames``, and for a database
``server``.
"""

from powerlab.frames.answers import best, comparisons
from powerlab.frames.figure_columns import figure_columns
from powerlab.frames.frame import Frame
from powerlab.frames.opening import Source
from powerlab.frames.tables import figures, layers, points, runs, trace

__all__ = [
    "Frame",
    "Source",
    "best",
    "comparisons",
    "figure_columns",
    "figures",
    "layers",
    "points",
    "runs",
    "trace",
]
