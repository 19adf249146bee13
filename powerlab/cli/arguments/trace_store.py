"""Where a database's traces lie, as options and the environment say."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from powerlab.store.traces.base import TraceStore


def trace_home(named: str | None = None) -> TraceStore:
    """Return the home of traces: the one that is named, else POWERLAB_TRACES's, else the database.

    Raises:
        PowerlabError: there is no such home, or it cannot be used.
    """
    from powerlab.store.traces.registry import open_traces

    address = named or os.environ.get("POWERLAB_TRACES")
    return open_traces(address, os.environ.get("POWERLAB_TRACES_QUERY"))
