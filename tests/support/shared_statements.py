"""Engines of one kind of database share what SQLAlchemy has compiled for the first of them.

A statement is compiled once per engine, and each test has an engine of its own: that was half of a store's time.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Engine

from powerlab.store import database


def share_statements() -> None:
    """Let every engine that the store makes from now on have the dialect and the compiled statements of one before.

    A dialect learns its server's version when its engine first connects, so one that never did is of no use.
    """
    make, first = database.create_engine, dict[str, Engine]()

    def create_engine(*address: Any, **options: Any) -> Engine:
        engine = make(*address, **options)
        like = first.get(engine.dialect.name)
        if like is None or like.dialect.server_version_info is None:
            first[engine.dialect.name] = engine
            return engine
        # A compiled statement belongs to a dialect, and SQLAlchemy has no public way to hand either on.
        engine.dialect = engine.pool._dialect = like.dialect
        engine._compiled_cache = like._compiled_cache
        return engine

    database.create_engine = create_engine
