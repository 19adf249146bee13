"""Creation and hashing of secrets."""

from __future__ import annotations

import hashlib
import secrets

_PREFIX = "powerlab_"
"""So that a token that got somewhere it should not be can be found there."""


def new_token() -> str:
    """Return a token of 256 random bits that goes into a header, an address or a file as it is."""
    return _PREFIX + secrets.token_urlsafe(32)


def new_code() -> str:
    """Return an enrolment code of 128 random bits, short enough for a command line."""
    return secrets.token_hex(16)


def sha256(secret: str) -> str:
    """Return the hash under which a secret is stored; secrets have 128 random bits or more, so no salt is needed."""
    return hashlib.sha256(secret.encode()).hexdigest()
