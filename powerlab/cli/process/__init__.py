"""Child processes and signals of commands that run for minutes."""
