"""Temperature limits of a run: :mod:`.guard` ends the worker of a device that is too hot (:mod:`.judge` decides)."""
