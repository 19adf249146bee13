"""Base class of all tables: constraint names, and types that differ between the two databases."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, ClassVar

from sqlalchemy import JSON, BigInteger, Dialect, Double, Integer, MetaData, String
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import DeclarativeBase
from sqlalchemy.types import DateTime, TypeDecorator

NAMING_CONVENTION = {
    "ix": "ix_%(column_0_N_label)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}
"""Every constraint has a name from the first day, so that a later migration can change it on either database."""

Uuid = String(36)
Json = JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")
BigKey = BigInteger().with_variant(Integer(), "sqlite")
"""SQLite counts rows by itself only in a column of the type INTEGER."""


class UtcDateTime(TypeDecorator[datetime]):
    """A point in time, always UTC with its zone in Python; SQLite, which knows no zones, stores it without."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Refuse times without a zone and turn the others into UTC."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"{value!r} has no time zone")
        utc = value.astimezone(UTC)
        return utc.replace(tzinfo=None) if dialect.name == "sqlite" else utc

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Give every time its zone."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if dialect.name == "sqlite" else value.astimezone(UTC)


class Base(DeclarativeBase):
    """The root of every table."""

    metadata = MetaData(naming_convention=NAMING_CONVENTION)
    type_annotation_map: ClassVar[dict[Any, Any]] = {datetime: UtcDateTime(), float: Double()}


def one_of(column: str, values: Iterable[StrEnum]) -> str:
    """Return the text of a CHECK that a column holds one of an enumeration's values."""
    return f"{column} IN ({', '.join(repr(value.value) for value in values)})"
