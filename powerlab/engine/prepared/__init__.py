"""What a model becomes before it gets its addresses and threads, and the cache that keeps it between processes."""
