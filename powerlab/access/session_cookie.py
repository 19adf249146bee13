"""Login sessions as signed cookies, so that no server has to store them.

Whatever signs must be shared by all servers on a database; what is signed holds no secret.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from datetime import datetime

import msgspec

COOKIE = "powerlab_session"
VALID_S = 12 * 3600
"""A working day; then one logs in again."""


def seal(key: bytes, subject: str, expires_at: datetime) -> str:
    """Return the cookie's value: the subject and its last moment, and their HMAC-SHA-256 (RFC 2104)."""
    said = _text(msgspec.json.encode((subject, int(expires_at.timestamp()))))
    return f"{said}.{_signature(key, said)}"


def unseal(key: bytes, cookie: str, now: datetime) -> str | None:
    """Return the subject; None where the cookie is over, or was not made with this key."""
    said, _, signature = cookie.partition(".")
    if not hmac.compare_digest(_signature(key, said).encode(), signature.encode()):
        return None
    content = base64.urlsafe_b64decode(said + "=" * (-len(said) % 4))
    subject, expires_at = msgspec.json.decode(content, type=tuple[str, int])
    return subject if now.timestamp() < expires_at else None


def fingerprint(key: bytes, secret: str) -> str:
    """Return what tells one secret from another and nothing else about it."""
    return hmac.digest(key, b"secret:" + secret.encode(), hashlib.sha256).hex()


def _signature(key: bytes, said: str) -> str:
    return _text(hmac.digest(key, b"session:" + said.encode(), hashlib.sha256))


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode("ascii").rstrip("=")
