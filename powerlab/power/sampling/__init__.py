"""How rails are sampled.

The recorder, its threads, counters, and sensors' real update periods. Start at :mod:`.recorder`.
"""
