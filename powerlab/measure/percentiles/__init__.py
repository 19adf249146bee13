"""Latency percentiles and what a finite number of queries proves about them."""
