"""The worker process that runs the engine.

Its main loop, the messages to it, and the parent's side. Start at :mod:`.process`.
"""
