"""Sweeps and runs on disk: the local database, results files, and reading either of them or a server."""
