"""Alembic migrations of the store: one file a change under ``versions``, run by ``powerlab.store.schema``."""
