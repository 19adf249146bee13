"""Boards as data (rails, totals, modes) and the simulator that stands in for them."""
