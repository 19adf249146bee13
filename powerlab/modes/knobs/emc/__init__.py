"""The knob ``emc``: the cap of a Jetson's memory clock."""
