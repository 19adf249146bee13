"""The audit of a run: every figure worked out again from what was recorded, and MLPerf Power's rules held against it.

Nothing here measures: an audit reads the run and its traces, wherever they are stored.
"""
