"""A point's figures over the sweeps of a device: the series, where it changed, and what changed with it.

Start at :mod:`.trends`.
"""
