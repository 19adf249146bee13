"""The knobs, one file or folder each. A new knob is one module here and one line in :mod:`powerlab.modes.registry`."""
