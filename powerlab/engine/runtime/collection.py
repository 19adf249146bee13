"""Python's cyclic garbage collector, kept from running while many objects are made of which all are needed."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache


@contextmanager
def uncollected() -> Iterator[None]:
    """Keep the collector from running: it would look again and again at everything that has been made so far.

    It belongs to the whole process. Where it is off already, by a caller or by another thread in here, it is left to
    those who switched it off; it runs again when the first thread leaves, which costs the others time and nothing else.

    When it is switched on again it would begin with all that was made, a tenth of the time that small models take to
    load. That is kept, so it counts as old at once: it is moved into the permanent generation and out of it again,
    which takes no time, unless somebody else kept things there when the first model was loaded.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        if not _others_keep_things():
            gc.freeze()
            gc.unfreeze()
        gc.enable()


@cache
def _others_keep_things() -> bool:
    """Tell whether the permanent generation is in use; asked once, because Python counts all that is there."""
    return gc.get_freeze_count() > 0
