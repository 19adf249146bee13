"""Storage of power traces: in the database, as Parquet files, or in ClickHouse.

Start at :mod:`.base`. A store is one module and a line in :mod:`.registry`, which opens it by its address.
"""
