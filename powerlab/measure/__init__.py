"""Measure one run: a worker process runs the model while its board's power is recorded.

Start at :mod:`.run`. :mod:`.recording` collects the raw record, :mod:`.energy` and :mod:`.percentiles` compute figures
from it, :mod:`.rules` judge it, and :mod:`.audit` recomputes a stored run the same way (:mod:`.figures`).
"""
