"""The knob ``emc``: the cap of a Jetson's memory clock. Start at :mod:`.knob`; :mod:`.pin` detects pinned clocks."""
