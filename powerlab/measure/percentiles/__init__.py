"""Latency percentiles and throughput with distribution-free intervals.

Start at :mod:`.latency`; :mod:`.early_stopping` says how many queries a percentile needs (MLPerf).
"""
