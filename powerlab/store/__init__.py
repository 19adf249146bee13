"""The database: one file on a laptop, PostgreSQL in production, the same code for both.

::

    store = open_store("powerlab.db")
    with store.session() as session:
        for record in queries.list_sweeps(session):
            runs = queries.runs_of_sweep(session, record.id)
"""

from powerlab.store.connection import Store, open_store

__all__ = ["Store", "open_store"]
