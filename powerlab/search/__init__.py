"""Which run of a sweep to make next, and when no further run is worth making (``--search``).

Start at :mod:`.searcher`, which is told of finished runs and names the next one. It does no I/O: a sweep asks it
between two runs, and ``bench/search/compare.py`` asks it on recorded and simulated grids. The method, with its
formulas, is in docs/method.md, "Adaptive sweeps".
"""
