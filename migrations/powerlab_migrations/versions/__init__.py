"""One file a change of the tables, each named after its number and what it does."""
