"""What a database is asked meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import event

from powerlab.store import Store


@contextmanager
def statements(store: Store) -> Iterator[list[str]]:
    """Collect the statements that are sent to a store's database."""
    seen: list[str] = []

    def note(*args: Any) -> None:
        seen.append(args[2])

    event.listen(store.engine, "before_cursor_execute", note)
    yield seen
    event.remove(store.engine, "before_cursor_execute", note)
