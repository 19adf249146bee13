"""The INA238 family of power monitors as a power source."""
