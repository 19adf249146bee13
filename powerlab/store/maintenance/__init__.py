"""Background work of a server on its database: partitions, retention, summaries. Start at :mod:`.worker`."""
