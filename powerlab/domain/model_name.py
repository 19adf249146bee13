"""Names of models on a server: ``NAME@sha256:DIGEST``, as container registries name images.

The digest says which bytes are meant, whatever happens to names; the name is for people and for tables. The form is
that of the Open Container Initiative's image references (distribution-spec 1.1, "pulling manifests").
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from powerlab.domain.errors import PowerlabError

_MARK = "sha256:"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_SHOWN_DIGITS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredModelName:
    """A model on a server.

    Attributes:
        name: for people, up to 100 letters, digits, dots, dashes and underscores.
        sha256: of the file's bytes, 64 hexadecimal digits.
    """

    name: str
    sha256: str

    def __str__(self) -> str:
        """Return it as a plan writes it."""
        return f"{self.name}@{_MARK}{self.sha256}"


def stored_model(word: str) -> StoredModelName | None:
    """Return what a plan's word for a model says; None where it is a zoo name or the path of a file.

    Raises:
        PowerlabError: the word speaks of a SHA-256, but not in the form above.
    """
    if "/" in word or _MARK not in word:
        return None
    name, _, digest = word.partition(f"@{_MARK}")
    if _NAME.fullmatch(name) is None or _DIGEST.fullmatch(digest) is None:
        raise PowerlabError(
            f"{word[:200]!r} names no model; write NAME@sha256: and its 64 hexadecimal digits, as `powerlab models "
            "list` shows them."
        )
    return StoredModelName(name=name, sha256=digest)


def check_name(name: str) -> None:
    """Raise PowerlabError where a model cannot be named so."""
    if _NAME.fullmatch(name) is None:
        raise PowerlabError(
            f"{name[:200]!r} is not a name for a model; take up to 100 letters, digits, dots, dashes and underscores, "
            "beginning with a letter or digit."
        )


def check_digest(sha256: str) -> None:
    """Raise PowerlabError where this is not a SHA-256 in lower-case hexadecimal."""
    if _DIGEST.fullmatch(sha256) is None:
        raise PowerlabError(f"{sha256[:100]!r} is not a SHA-256; give its 64 hexadecimal digits, in lower case.")


def short(word: str) -> str:
    """Return a plan's word for a model, short enough for a table: of a digest its beginning."""
    name, mark, digest = word.partition(f"@{_MARK}")
    return f"{name}@{digest[:_SHOWN_DIGITS]}" if mark and _DIGEST.fullmatch(digest) else word
