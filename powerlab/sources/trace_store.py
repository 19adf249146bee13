"""``--traces``: where the traces of a database are stored."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from powerlab.store.traces.base import TraceStore


def open_trace_store(address: str | None = None) -> TraceStore:
    """Open the trace store at ``address``, else at POWERLAB_TRACES, else the database itself.

    Raises:
        PowerlabError: the address is invalid, or the store cannot be used.
    """
    from powerlab.store.traces.registry import open_traces

    return open_traces(address or os.environ.get("POWERLAB_TRACES"), os.environ.get("POWERLAB_TRACES_QUERY"))
