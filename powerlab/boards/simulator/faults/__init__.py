"""Faults on demand: what sensors, programs and other people do to a board, done to a simulated one.

A fault is one module in this package with one class, and one line in :mod:`.registry`. Faults in force stand in a file
of the tree, one a line; the running simulator follows it, and puts everything right again when a fault is cleared or it
ends itself.
"""
