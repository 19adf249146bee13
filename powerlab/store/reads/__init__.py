"""Queries: everything that only reads the database, one subject per file.

Start at :mod:`.queries`. Results are domain objects and protocol records, never rows (:mod:`.convert`).
"""
