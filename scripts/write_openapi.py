"""Write api/openapi.json: what the application says of itself, so that a change of the API is seen in a review."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from powerlab.store import open_store
from powerlab_api.app import create_app

_FILE = Path(__file__).resolve().parent.parent / "api" / "openapi.json"


def document() -> str:
    """Return the text of the file."""
    store = open_store("sqlite://")
    try:
        return json.dumps(create_app(store).openapi(), indent=2, ensure_ascii=False) + "\n"
    finally:
        store.close()


def main() -> int:
    """Write the file."""
    _FILE.write_text(document(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
