"""CSRF tokens: prove that a form comes from a page that this server made for the same visitor.

A second lock beside :mod:`powerlab.access.origin`, which trusts what browsers say: no page of another site can read
this word, whatever its browser says or leaves out (OWASP, Cross-Site Request Forgery Prevention, "HMAC-based token").
"""

from __future__ import annotations

import hashlib
import hmac


def form_token(key: bytes, name: str, cookie: str) -> str:
    """Return the word for a visitor's login.

    Args:
        key: what signs sessions, the same for every server on a database.
        name: who visits.
        cookie: the login's cookie; empty where nobody logs in.
    """
    return hmac.digest(key, b"form:" + "\0".join((name, cookie)).encode(), hashlib.sha256).hex()


def is_form_token(expected: str, given: str) -> bool:
    """Return whether a form brought the word, in a time that tells nothing of it."""
    return hmac.compare_digest(expected.encode(), given.encode(errors="replace"))
