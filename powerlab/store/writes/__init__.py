"""Everything that changes the database, one subject per file. Start at :mod:`.sweeps`.

Each function runs inside one ``store.write()`` transaction.
"""
