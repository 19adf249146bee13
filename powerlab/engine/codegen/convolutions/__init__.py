"""Convolutions: algorithms and what each costs, how the work is cut, and which one is chosen. Start at :mod:`.choosing`."""
