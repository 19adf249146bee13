"""Time and energy of every layer of the built-in engine: each step of its plan repeated by itself.

The worker's side is :mod:`powerlab.measure.layers.bench`; the sweep's side begins at
:mod:`powerlab.measure.layers.session`; what the figures are made of stands in :mod:`powerlab.measure.layers.figures`.
"""
