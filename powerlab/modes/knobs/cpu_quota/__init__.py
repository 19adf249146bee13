"""The knob ``cpu_quota`` and the control groups (versions 1 and 2) behind it."""
