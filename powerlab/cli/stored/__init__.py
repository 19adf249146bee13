"""Stored sweeps and runs: the local database, results files, and reading either of them or a server.

Start at :mod:`.runs`.
"""
