"""Requests to a server of the tests that may be long in answering: the machine may be busy."""

from __future__ import annotations

from typing import Any

import urllib3

_PATIENCE_S = 120.0


def http_answer(method: str, url: str, **options: Any) -> urllib3.BaseHTTPResponse:
    """Send a request as ``urllib3.request`` does, which by itself gives an answer three seconds."""
    return urllib3.request(method, url, timeout=_PATIENCE_S, **options)
