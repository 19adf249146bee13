"""Power modes that need a reboot: entering one, and the note that says what to return to."""
