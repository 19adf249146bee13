"""Static files: the dashboard's own, and Plotly's script from the installed ``plotly`` package."""

from __future__ import annotations

import functools
import gzip
import hashlib
import importlib.metadata
import importlib.util
import re
from dataclasses import dataclass
from pathlib import Path

from fastapi import Request, Response

from powerlab.domain.errors import PowerlabError

_FOLDER = Path(__file__).parent / "static"
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
    """Return the file name of Plotly's script; it contains the version, so browsers can cache it forever.

    Raises:
        PowerlabError: the ``plotly`` package is not installed.
    """
    try:
        return f"plotly-{importlib.metadata.version('plotly')}.min.js"
    except importlib.metadata.PackageNotFoundError as error:
        raise PowerlabError(
            "the dashboard needs the plotly package, which is not installed; install powerlab[server]."
        ) from error


@functools.cache
def files() -> dict[str, StaticFile]:
    """Return every static file under the name it is served by; read once and kept (about 6 MB)."""
    own = {path.name: _load(path, _ASK_AGAIN) for path in sorted(_FOLDER.iterdir()) if path.suffix in _TYPES}
    return own | {plotly_name(): _load(_plotly_script(), _A_YEAR)}


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
        compressed=gzip.compress(content, compresslevel=6, mtime=0),
        media_type=_TYPES[path.suffix],
        tag=f'"{hashlib.sha256(content).hexdigest()[:16]}"',
        cache_control=cache_control,
    )


def _plotly_script() -> Path:
    """Return the path of the script in the installed package, without importing the package."""
    found = importlib.util.find_spec("plotly")
    folders = list(found.submodule_search_locations or ()) if found else []
    for folder in folders:
        script = Path(folder) / "package_data" / "plotly.min.js"
        if script.is_file():
            return script
    raise PowerlabError("the installed plotly package has no package_data/plotly.min.js; reinstall powerlab[server].")
