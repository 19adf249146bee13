"""Power modes: knobs that set a device, and the journal that restores the previous settings.

Start at :mod:`.controller`. A knob is a module of :mod:`.knobs` and a line in :mod:`.registry`; :mod:`.undo` restores
settings after a crash, :mod:`.reboot` handles modes that need one.
"""
