"""The database: models, sessions, queries, traces."""
