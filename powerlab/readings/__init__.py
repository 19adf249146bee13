"""What a device reads now: power, clocks, temperatures, load and mode, for people who watch it."""
