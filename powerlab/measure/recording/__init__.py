"""What is recorded beside a run: power rails, clocks, background load, device state."""
