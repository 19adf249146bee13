"""Passes that compute constants at load time, or fold them into weights and biases. Start at :mod:`.constants`."""
