"""Everything that changes the database, one subject a file; each function runs inside one ``store.write()``."""
