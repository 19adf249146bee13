"""What a simulated board is made of: one module a part, listed in :mod:`.registry`."""
