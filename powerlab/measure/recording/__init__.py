"""What is recorded around a run: power rails, clocks, background load, device state. Start at :mod:`.rails`."""
