"""The power sources, one file or folder each.

A new source is one module here and one line in :mod:`powerlab.power.registry`.
"""
