"""Power modes that need a reboot: :mod:`.transition` enters one, :mod:`.return_note` records what to return to."""
