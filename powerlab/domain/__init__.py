"""The words of powerlab as frozen dataclasses: no input or output happens here, and nothing else is imported.

Start at :class:`~powerlab.domain.sweep.SweepPlan` (what is asked), then :class:`~powerlab.domain.run.Run` (what was
measured); every figure in a run is a :class:`~powerlab.domain.quantity.Metric` with its unit, interval and provenance.
"""
