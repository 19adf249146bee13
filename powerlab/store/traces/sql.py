# ruff: noqa: S608 - what is put into the text is numbers, and identifiers that condition() quotes
"""Queries of traces in SQL that both DuckDB and ClickHouse accept.

``{source}`` stands for the files, which each engine names in its own way; DuckDB learns ``intDiv`` as a macro. Samples
are counted per rail and part within the window, and cut into buckets of equally many as
:func:`powerlab.store.reads.decimate.decimate` does: bucket b of B begins at sample (b * n) // B, so sample i lies in
bucket
((i + 1) * B - 1) // n.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from powerlab.store.reads.decimate import Bucket


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which samples: of a run, within a window with both ends, and of some rails where they are named."""

    run_id: str
    start_ns: int
    end_ns: int
    rail_ids: Sequence[int] = ()

    def condition(self) -> str:
        """Return it as a condition."""
        run_id = self.run_id.replace("'", "''")
        rails = f" AND rail_id IN ({', '.join(str(int(one)) for one in self.rail_ids)})" if self.rail_ids else ""
        return f"run_id = '{run_id}' AND time_ns BETWEEN {int(self.start_ns)} AND {int(self.end_ns)}{rails}"


def samples(wanted: Wanted) -> str:
    """Ask for every sample."""
    return (
        "SELECT rail_id, part, position, time_ns, value FROM {source} "
        f"WHERE {wanted.condition()} ORDER BY rail_id, part, position, time_ns"
    )


def decimated(wanted: Wanted, points: int, bucket: Bucket) -> str:
    """Ask for at most so many points of each rail and part: all samples where they are no more."""
    if bucket is Bucket.MEAN:
        chosen = (
            "SELECT rail_id, part, "
            "CAST(min(origin) + intDiv(sum(time_ns - origin), count(*)) AS BIGINT) AS at_ns, avg(value) AS level "
            "FROM placed GROUP BY rail_id, part, bucket"
        )
        return _placed(wanted, points, points) + f"SELECT * FROM ({chosen}) AS chosen ORDER BY rail_id, part, at_ns"
    ends = points >= 4
    own = "SELECT rail_id, part, argMin(time_ns, {key}) AS at_ns, argMin(value, {key}) AS level FROM placed "
    parts = [own.format(key=key) + "GROUP BY rail_id, part, bucket" for key in ("(value, i)", "(-value, i)")]
    if ends:
        parts.append("SELECT rail_id, part, time_ns AS at_ns, value AS level FROM placed WHERE i = 0 OR i = n - 1")
    return (
        _placed(wanted, points, (points - 2) // 2 if ends else 1)
        + f"SELECT DISTINCT rail_id, part, at_ns, level FROM ({' UNION ALL '.join(parts)}) AS chosen "
        + "ORDER BY rail_id, part, at_ns"
    )


def _placed(wanted: Wanted, points: int, buckets: int) -> str:
    """Begin with every sample in its bucket; a trace that is short enough has a bucket a sample."""
    of_trace = "OVER (PARTITION BY rail_id, part"
    return (
        "WITH numbered AS (SELECT rail_id, part, time_ns, value, "
        f"CAST(row_number() {of_trace} ORDER BY position, time_ns) AS BIGINT) - 1 AS i, "
        f"CAST(count(*) {of_trace}) AS BIGINT) AS n, min(time_ns) {of_trace}) AS origin "
        f"FROM {{source}} WHERE {wanted.condition()}), "
        f"placed AS (SELECT rail_id, part, time_ns, value, i, n, origin, "
        f"CASE WHEN n <= {int(points)} THEN i ELSE intDiv((i + 1) * {int(buckets)} - 1, n) END AS bucket "
        "FROM numbered) "
    )
