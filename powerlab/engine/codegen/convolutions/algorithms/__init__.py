"""Algorithms for convolutions, one a file.

Where each applies, what it costs, and the steps it emits. Start at :mod:`.table`.
"""
