"""The knob ``nvpmodel``: a Jetson's own power modes. Start at :mod:`.knob`; :mod:`.conf` parses the table of modes."""
