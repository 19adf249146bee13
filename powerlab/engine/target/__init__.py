"""The machine that code is generated for: instruction-set tier, caches, cores, measured peaks.

Start at :mod:`.machine`.
"""
