"""Models whose shapes only a run tells: planned in stages, each when what decides its shapes is known.

Start at :mod:`powerlab.engine.staged.model`, which runs one stage after the other; :mod:`powerlab.engine.staged.place`
says where a run is between two stages, and :mod:`powerlab.engine.staged.shelf` lets plans share their weights.
"""
