"""What a server does for its database in the background: partitions, retention, summaries."""
