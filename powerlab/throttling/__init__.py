"""Whether a device was slowed down while something was measured, and by what.

    watchings = [watch.start(sysroot) for watch in WATCHES]
    ...                                        # the timed part; watching.sample() about five times a second
    sentences = [sentence for watching in watchings for sentence in watching.finish()]

A new watch is a module with a class that fulfils :class:`~powerlab.throttling.base.Watch` and one line in
:mod:`powerlab.throttling.registry`.
"""
