"""A plan made into runs."""
