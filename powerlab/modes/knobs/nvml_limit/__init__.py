"""The knob ``nvml_limit``: power limit and locked clocks of NVIDIA cards. Start at :mod:`.knob`."""
