"""Whether a change made a device slower or hungrier than a baseline: the test, its verdicts, and the runs they take.

Start at :mod:`.gate`.
"""
