"""Child processes (:mod:`.children`) and signals (:mod:`.interrupts`) of commands that run for minutes."""
