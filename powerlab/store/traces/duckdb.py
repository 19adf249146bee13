"""DuckDB within the server's process: nothing to run, files are read in place."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence

import pyarrow as pa  # type: ignore[import-untyped]
from pyarrow import dataset

from powerlab.domain.errors import PowerlabError
from powerlab.store.errors import UnavailableError
from powerlab.store.traces.object_storage import Objects
from powerlab.store.traces.table import SCHEMA

_VIEW = "trace_files"


class Duck:
    """One DuckDB for all threads; each question has a connection of its own."""

    def __init__(self, _address: str, objects: Objects) -> None:
        if importlib.util.find_spec("duckdb") is None:
            raise PowerlabError("traces in Parquet files need the scale extra: `pip install 'powerlab[server,scale]'`.")
        import duckdb

        self._objects = objects
        # No extension is looked for on the network: what is needed to read Parquet is built in.
        options: dict[str, str | bool | int | float | list[str]] = {
            "autoinstall_known_extensions": False,
            "memory_limit": "1GB",
            "threads": 2,
        }
        self._database = duckdb.connect(":memory:", config=options)
        self._database.execute("CREATE MACRO intDiv(a, b) AS a // b")

    def ask(self, keys: Sequence[str], question: str) -> pa.Table:
        """Return the answer from some of the files; see :class:`~powerlab.store.traces.query_engines.QueryEngine`."""
        import duckdb

        paths = [self._objects.path(key) for key in keys]
        with self._database.cursor() as connection:
            try:
                source = self._source(connection, paths)
                return connection.sql(question.replace("{source}", source)).to_arrow_table()
            except (duckdb.Error, OSError) as error:
                reason = " ".join(str(error).split())
                raise UnavailableError(
                    f"traces at {self._objects.address} cannot be read now ({reason}); try again later."
                ) from error

    def _source(self, connection: object, paths: list[str]) -> str:
        """Name files: a folder's DuckDB reads itself, those in object storage pyarrow, since it needs no extension."""
        if self._objects.url is None:
            names = ", ".join("'" + path.replace("'", "''") + "'" for path in paths)
            return f"read_parquet([{names}], hive_partitioning = false)"
        files = dataset.dataset(paths, schema=SCHEMA, format="parquet", filesystem=self._objects.filesystem)
        connection.register(_VIEW, files)  # type: ignore[attr-defined]
        return _VIEW
