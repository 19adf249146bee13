"""One run: worker process, window, energy, uncertainty, validity."""
