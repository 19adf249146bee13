"""api/openapi.json is what the application says of itself."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="module")
def written(load: Callable[[Path], ModuleType], root: Path) -> str:
    text: str = load(root / "scripts" / "write_openapi.py").document()
    return text


def test_the_file_is_up_to_date(root: Path, written: str) -> None:
    stored = (root / "api" / "openapi.json").read_text(encoding="utf-8")
    assert stored == written, "api/openapi.json is out of date; run 'make openapi' and look at the difference"


def test_every_address_is_versioned_and_described(written: str) -> None:
    paths = json.loads(written)["paths"]
    assert paths
    for path, methods in paths.items():
        assert path.startswith("/api/v1/")
        for method, operation in methods.items():
            assert operation.get("description") or operation.get("summary"), f"{method} {path}"
