"""The shipped Grafana dashboards as data."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[2] / "dashboards" / "grafana"
FILES = sorted((FOLDER / "dashboards").glob("*.json"))


@dataclass(frozen=True)
class Query:
    """What a panel asks Prometheus."""

    board: str
    panel: str
    unit: str
    expression: str

    def filled(self, **variables: str) -> str:
        """Return the expression as Grafana would send it."""
        text = self.expression
        for name, value in variables.items():
            text = re.sub(rf"\$(?:{name}\b|\{{{name}\}})", lambda _, value=value: value, text)
        assert "$" not in text, f"{self.board}, {self.panel}: nobody fills a variable of {text}"
        return text


def read(path: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return document


def panels(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the panels, those of rows that are folded too."""
    for panel in document["panels"]:
        yield panel
        yield from panel.get("panels", ())


def queries() -> list[Query]:
    return [
        Query(path.stem, panel["title"], panel["fieldConfig"]["defaults"]["unit"], target["expr"])
        for path in FILES
        for panel in panels(read(path))
        for target in panel.get("targets", ())
    ]
