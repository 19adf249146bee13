"""Pages and charts over the store."""
