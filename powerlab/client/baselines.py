"""Baselines and trends of a server."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from powerlab.analysis.trends.trends import Trend
from powerlab.client.transport import Transport
from powerlab.protocol.baselines import Baseline, BaselinePage, BaselineRequest

PAGE = 100
"""Items asked for at a time."""


@dataclass(frozen=True, slots=True)
class Baselines:
    """Asks one server, through ``Client(...).transport``; every method raises what :class:`Client`'s raise."""

    transport: Transport

    def baselines(self) -> Iterator[Baseline]:
        """Yield baselines in the order of their names."""
        cursor: str | None = None
        while True:
            page = self.transport.get("/baselines", BaselinePage, limit=PAGE, cursor=cursor)
            yield from page.items
            cursor = page.next_cursor
            if cursor is None:
                return

    def baseline(self, name: str) -> Baseline:
        """Return one baseline."""
        return self.transport.get(f"/baselines/{_safe(name)}", Baseline)

    def put(self, name: str, request: BaselineRequest) -> Baseline:
        """Make sweeps part of a baseline."""
        return self.transport.repeat("PUT", f"/baselines/{_safe(name)}", request, Baseline)

    def remove(self, name: str) -> None:
        """Forget a baseline; its sweeps stay."""
        self.transport.delete(f"/baselines/{_safe(name)}")

    def trends(
        self, model: str, *, device_id: str | None = None, metrics: Sequence[str] = (), limit: int | None = None
    ) -> tuple[Trend, ...]:
        """Return a model's series with their change points."""
        chosen = {"device": device_id, "metric": tuple(metrics), "limit": limit}
        return self.transport.get("/trends", tuple[Trend, ...], model=model, **chosen)


def _safe(word: str) -> str:
    return quote(word, safe="")
