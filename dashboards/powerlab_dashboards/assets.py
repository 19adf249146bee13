"""Static files: the dashboard's own, and the part of Plotly that its charts use (``dashboards/plotly``)."""

from __future__ import annotations

import functools
import gzip
import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from fastapi import Request, Response

_FOLDER = Path(__file__).parent / "static"
PLOTLY = Path(__file__).parent / "vendor" / "plotly.min.js"
_TYPES = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
_A_YEAR = "public, max-age=31536000, immutable"
_ASK_AGAIN = "no-cache"
_WEIGHT = re.compile(r"[01](\.\d{0,3})?")


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticFile:
    """A file ready to send: its content, plain and compressed, and its ETag."""

    content: bytes
    compressed: bytes
    media_type: str
    tag: str
    cache_control: str


@functools.cache
def plotly_name() -> str:
    """Return the name that Plotly's script is served by; it contains a hash, so browsers can cache it forever."""
    return f"plotly-{hashlib.sha256(PLOTLY.read_bytes()).hexdigest()[:12]}.min.js"


@functools.cache
def files() -> dict[str, StaticFile]:
    """Return every static file under the name it is served by; read once and kept (about 2 MB)."""
    own = {path.name: _load(path, _ASK_AGAIN) for path in sorted(_FOLDER.iterdir()) if path.suffix in _TYPES}
    return own | {plotly_name(): _load(PLOTLY, _A_YEAR)}


def respond(request: Request, name: str) -> Response | None:
    """Respond to a request for a static file: 304 if the browser has it cached; None for an unknown name."""
    file = files().get(name)
    if file is None:
        return None
    headers = {
        "cache-control": file.cache_control,
        "etag": file.tag,
        "vary": "accept-encoding",
        "x-content-type-options": "nosniff",
    }
    if file.tag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    if _takes_gzip(request.headers.get("accept-encoding", "")):
        return Response(file.compressed, media_type=file.media_type, headers=headers | {"content-encoding": "gzip"})
    return Response(file.content, media_type=file.media_type, headers=headers)


def _takes_gzip(accepted: str) -> bool:
    """Whether an Accept-Encoding header names gzip with a weight above 0 (RFC 9110, 12.5.3)."""
    for coding in accepted.lower().split(","):
        name, *parameters = (part.strip() for part in coding.split(";"))
        if name == "gzip":
            weight = next((part[2:] for part in parameters if part.startswith("q=")), "1")
            return _WEIGHT.fullmatch(weight) is not None and float(weight) > 0
    return False


def _load(path: Path, cache_control: str) -> StaticFile:
    content = path.read_bytes()
    return StaticFile(
        content=content,
        compressed=gzip.compress(content, compresslevel=9, mtime=0),
        media_type=_TYPES[path.suffix],
        tag=f'"{hashlib.sha256(content).hexdigest()[:16]}"',
        cache_control=cache_control,
    )
