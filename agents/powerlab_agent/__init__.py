"""The agent daemon: takes sweeps from a server, runs them on its device, uploads what it measured."""
