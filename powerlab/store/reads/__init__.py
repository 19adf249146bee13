"""Everything that only reads the database, one subject a file."""
