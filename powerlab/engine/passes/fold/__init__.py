"""Passes that compute at load time what no input changes, or move it into weights and biases."""
