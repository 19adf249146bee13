"""The agent daemon: takes sweeps from a server, runs them on its device, uploads what it measured.

What was measured lies on disk in the :mod:`~powerlab_agent.spool` before anything is sent, and leaves it only when the
server has said that it is stored. Uploads happen between runs, never while one is being measured.
"""
