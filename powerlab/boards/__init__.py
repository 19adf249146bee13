"""Boards as data, and the simulator that stands in for them.

Start at :mod:`.board`. A board is one TOML file in ``data``: its rails, total, power modes and parts; :mod:`.registry`
reads them all.
"""
