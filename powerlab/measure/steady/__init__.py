"""Steady state: warm-up until latency, power and temperature are steady, and cool-down between runs.

Start at :mod:`.warm_up`; the test for a trend is in :mod:`.drift`.
"""
