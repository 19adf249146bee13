"""The knob ``jetson_clocks``: all clocks at their limits.

Start at :mod:`.knob`; :mod:`.program` runs NVIDIA's program.
"""
