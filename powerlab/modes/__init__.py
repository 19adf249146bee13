"""Knobs, one a file, and the journal that can always undo them."""
