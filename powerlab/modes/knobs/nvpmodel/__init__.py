"""The knob ``nvpmodel``: a Jetson's own power modes, read from its table and set by its program."""
