"""``powerlab engine cache``: what the engine keeps of models it has prepared, and its removal."""

from __future__ import annotations

import argparse
import json
from datetime import UTC, datetime

_DESCRIPTION = """\
List the prepared models that the built-in engine keeps, the latest used first, or remove them. A model that was
prepared once loads by mapping its file. The cache is off unless POWERLAB_CACHE gives its size (500M, 2G).
"""

_EPILOG = """\
The files lie in engine/ in powerlab's cache directory (XDG_CACHE_HOME). They may be removed at any time; those unused
for the longest go when there is no room. `powerlab profile` does not use them.

examples:
  POWERLAB_CACHE=2G powerlab engine run resnet50 --input in.npz --output out.npz
  powerlab engine cache
  powerlab engine cache --clear
"""


def add_cache_parser(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the action."""
    parser = actions.add_parser(
        "cache", help="list or clear the prepared models", description=_DESCRIPTION, epilog=_EPILOG
    )
    parser.add_argument("--clear", action="store_true", help="remove them")
    parser.add_argument("--json", action="store_true", help="print JSON")


def cache(args: argparse.Namespace) -> int:
    """List or clear the cache; returns the exit status."""
    import os

    from powerlab.engine.ir.graph import quoted
    from powerlab.engine.prepared.cache import VARIABLE, Cache, cache_folder, room

    setting = os.environ.get(VARIABLE, "off")
    kept = Cache(folder=cache_folder(), room_bytes=room(setting))
    entries = kept.clear() if args.clear else kept.entries()
    total = sum(entry.size_bytes for entry in entries)
    if args.json:
        document = {
            "folder": str(kept.folder),
            "room_bytes": kept.room_bytes,
            "cleared": args.clear,
            "models": [
                {"file": entry.path.name, "name": entry.name, "size_bytes": entry.size_bytes, "used_ns": entry.used_ns}
                for entry in entries
            ],
        }
        print(json.dumps(document, indent=2))
        return 0
    if args.clear:
        print(f"{kept.folder}: removed {len(entries)} prepared model(s), {total / 1e6:.1f} MB")
        return 0
    for entry in entries:
        used = datetime.fromtimestamp(entry.used_ns // 10**9, UTC).strftime("%Y-%m-%d %H:%M UTC")
        print(f"{quoted(entry.name)[1:-1]:<24} {entry.size_bytes / 1e6:>8.1f} MB  last used {used}")
    allowed = f"of {kept.room_bytes / 1e6:.0f} MB" if kept.room_bytes else f"and {VARIABLE} is off"
    print(f"{kept.folder}: {len(entries)} prepared model(s), {total / 1e6:.1f} MB {allowed}")
    return 0
