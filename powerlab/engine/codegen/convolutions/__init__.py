"""Convolutions: the algorithms, their costs, how work is split, and which one is chosen. Start at :mod:`.choosing`."""
