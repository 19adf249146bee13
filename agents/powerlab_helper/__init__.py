"""The privileged helper: a small root process that does a fixed list of things for the agent, which is no root."""
