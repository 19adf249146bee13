"""ClickHouse over HTTP, one server or a cluster: reads the same files, many machines at a time.

The interface: https://clickhouse.com/docs/interfaces/http; the table functions ``file``, ``s3`` and ``s3Cluster``:
https://clickhouse.com/docs/sql-reference/table-functions. What ClickHouse needs to read the storage is configured there
(``<s3>`` in its configuration); powerlab sends it no keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import parse_qs, unquote, urlsplit

import pyarrow as pa  # type: ignore[import-untyped]
import urllib3

from powerlab.domain.errors import PowerlabError
from powerlab.store.errors import UnavailableError
from powerlab.store.traces.object_storage import Objects

_PORT = 8123
_OPTIONS = {"cluster", "files", "tls"}
_PATIENCE = urllib3.Timeout(connect=5.0, read=60.0)


class ClickHouse:
    """``clickhouse://user:password@host:8123/?cluster=NAME&files=URL&tls=1``.

    ``cluster`` lets all its machines read; ``files`` says where the files are as ClickHouse sees them, where that
    differs: an address over HTTP, or a path that it may read (below its ``user_files_path``).
    """

    def __init__(self, address: str, objects: Objects) -> None:
        parts = urlsplit(address)
        options = {name: values[-1] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
        if not parts.hostname or parts.path not in {"", "/"} or not set(options) <= _OPTIONS:
            raise PowerlabError(
                "the address of ClickHouse is wrong; write clickhouse://USER:PASSWORD@HOST:8123, and behind it "
                "?cluster=NAME, files=URL or tls=1."
            )
        scheme = "https" if options.get("tls") else "http"
        self.address = f"{scheme}://{parts.hostname}:{parts.port or _PORT}/"
        self._user, self._password = unquote(parts.username or "default"), unquote(parts.password or "")
        self._cluster = options.get("cluster")
        self._files = (options.get("files") or objects.url or objects.root).rstrip("/")
        self._pool = urllib3.PoolManager(timeout=_PATIENCE, retries=urllib3.Retry(2, redirect=0))

    def ask(self, keys: Sequence[str], question: str) -> pa.Table:
        """Return the answer from some of the files; see :class:`~powerlab.store.traces.query_engines.QueryEngine`."""
        text = question.replace("{source}", self._source(keys)) + " FORMAT ArrowStream"
        headers = {"X-ClickHouse-User": self._user, "X-ClickHouse-Key": self._password}
        # Strings as Arrow's own kind of strings, and an error that comes late as an error, not as half an answer.
        fields = "?output_format_arrow_string_as_string=1&wait_end_of_query=1"
        try:
            answer = self._pool.request("POST", self.address + fields, body=text.encode(), headers=headers)
        except urllib3.exceptions.HTTPError as error:
            raise UnavailableError(
                f"ClickHouse at {self.address} cannot be reached ({error}); try again later."
            ) from error
        if answer.status != 200:
            reason = " ".join(answer.data.decode(errors="replace").split())[:500]
            raise UnavailableError(f"ClickHouse at {self.address} cannot answer ({answer.status}: {reason}).")
        try:
            return pa.ipc.open_stream(answer.data).read_all()
        except pa.ArrowException as error:
            raise UnavailableError(f"ClickHouse at {self.address} sent no table ({error}).") from error

    def _source(self, keys: Sequence[str]) -> str:
        """Name files, all of them in one pattern: none has a character in its key that patterns know."""
        place = f"{self._files}/{{{','.join(keys)}}}" if len(keys) > 1 else f"{self._files}/{keys[0]}"
        quoted = "'" + place.replace("\\", "\\\\").replace("'", "\\'") + "'"
        if not place.startswith(("http://", "https://")):
            return f"file({quoted}, 'Parquet')"
        if self._cluster:
            cluster = self._cluster.replace("\\", "\\\\").replace("'", "\\'")
            return f"s3Cluster('{cluster}', {quoted}, 'Parquet')"
        return f"s3({quoted}, 'Parquet')"
