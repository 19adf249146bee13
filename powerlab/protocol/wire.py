"""JSON encoding of messages and domain objects."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from powerlab.domain.errors import PowerlabError

T = TypeVar("T")


def encode(message: object) -> bytes:
    """Return compact JSON; the same message gives the same bytes, and finite floats come back exactly."""
    return msgspec.json.encode(message)


def decode(data: bytes | str, kind: type[T]) -> T:
    """Return a message.

    Raises:
        PowerlabError: the text is no JSON, or not that message.
    """
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise PowerlabError(f"this is not a {kind.__name__} message: {error}.") from error


def reader(kind: type[T]) -> Callable[[str], T]:
    """Return what reads one kind of message from JSON, made ready once for many; it raises as :func:`decode` does."""
    decoder = msgspec.json.Decoder(kind)

    def read(text: str) -> T:
        try:
            return decoder.decode(text)
        except msgspec.DecodeError as error:
            raise PowerlabError(f"this is not a {kind.__name__}: {error}.") from error

    return read


def to_document(message: object) -> Any:
    """Return plain dicts, lists, strings and numbers, equal to what a JSON column gives back."""
    return msgspec.json.decode(msgspec.json.encode(message))


def from_document(document: object, kind: type[T]) -> T:
    """Return a message from what :func:`to_document` made; raises PowerlabError where it is something else."""
    try:
        return msgspec.convert(document, type=kind)
    except msgspec.ValidationError as error:
        raise PowerlabError(f"this is not a {kind.__name__}: {error}.") from error


def check_survives(message: object) -> None:
    """Raise PowerlabError where a message's JSON is not read back as the same message: JSON has no NaN, no infinity."""
    if decode(encode(message), type(message)) != message:
        raise PowerlabError(
            f"the {type(message).__name__} holds a number that is not finite, which JSON cannot express."
        )


def digest(message: object) -> str:
    """Return the SHA-256 of a message's JSON, in hex."""
    return hashlib.sha256(encode(message)).hexdigest()
