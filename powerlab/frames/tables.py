"""Runs, points, samples and layers as frames."""

from __future__ import annotations

from collections.abc import Iterator

from powerlab.domain.layers import LayerProfile
from powerlab.domain.quantity import METRICS
from powerlab.domain.run import Run, Verdict
from powerlab.frames.figure_columns import (
    FINDINGS_COLUMN,
    LAYER_FIGURES,
    RUN_FIGURES,
    cells_of,
    columns_of,
    findings_cell,
)
from powerlab.frames.frame import Frame, frame_of, needed
from powerlab.frames.opening import Source, chosen_profiles, chosen_sweeps, opened
from powerlab.protocol.export import (
    FIGURE_COLUMNS,
    POINT_COLUMNS,
    RUN_COLUMNS,
    SCOPE_COLUMN,
    Cell,
    Column,
    figure_rows,
    point_cells,
    run_cells,
    scope_of,
)
from powerlab.protocol.trace_export import TRACE_COLUMNS
from powerlab.sources import source as stored_results
from powerlab.sources.identifiers import run_id as whole_run_id
from powerlab.sources.identifiers import sweep_ids

RUN_FRAME = (*RUN_COLUMNS, SCOPE_COLUMN, *RUN_FIGURES, FINDINGS_COLUMN)
POINT_FRAME = (
    Column("sweep_id", "string", "the sweep's identifier"),
    Column("device", "string", "the device's name"),
    Column("point_id", "string", "depends on the point's content alone: the same point has it in every sweep"),
    *POINT_COLUMNS,
    Column("run_count", "int64", "repeats that were tried"),
    Column("valid_count", "int64", "repeats whose verdict is valid"),
    *RUN_FIGURES,
    FINDINGS_COLUMN,
)
LAYER_FRAME = (
    Column("profile_id", "string", "the layer profile's identifier"),
    Column("started_at", "string", "when it began, ISO 8601, by its device's clock"),
    Column("device", "string", "the device's name"),
    Column("model", "string", "zoo name or path"),
    Column("batch_size", "int64", "images per inference"),
    Column("threads", "int64", "threads that computed"),
    Column("mode", "string", "power mode"),
    Column("tier", "string", "the instruction set"),
    Column("layer", "int64", "place in the order of execution, from 0"),
    Column("name", "string", "the layer's name"),
    Column("operator", "string", "what it computes; empty where it only moves data"),
    Column("kernel", "string", "the kernel that computes it"),
    Column("flops", "int64", "floating-point operations, two for a multiply-add", unit="FLOP"),
    Column("bytes_moved", "int64", "operands, weights and result, each once, in float32", unit="B"),
    Column(
        "share_percent",
        "double",
        "share of the whole inference's energy, or of its time where there is no energy",
        unit="%",
    ),
    *columns_of(LAYER_FIGURES),
    FINDINGS_COLUMN,
)


def runs(
    source: Source = None, *, sweep_id: str | None = None, model: str | None = None, verdict: Verdict | None = None
) -> Frame:
    """Return a row a run, in the order in which they arrived, with a figure in four columns.

    Raises:
        PowerlabError: the source cannot be read, or has no such sweep.
    """
    with opened(source) as stored:
        found = _chosen_runs(stored, sweep_id, model, verdict)
        rows = (
            (*run_cells(run), scope_of(run), *cells_of(METRICS, run.metrics), findings_cell(run.findings))
            for run in found
        )
        return frame_of(RUN_FRAME, rows)


def figures(
    source: Source = None, *, sweep_id: str | None = None, model: str | None = None, verdict: Verdict | None = None
) -> Frame:
    """Return a row a figure, as an export has it; a run without figures has one row.

    Raises:
        PowerlabError: as of :func:`runs`.
    """
    with opened(source) as stored:
        found = _chosen_runs(stored, sweep_id, model, verdict)
        return frame_of(FIGURE_COLUMNS, figure_rows(found))


def _chosen_runs(
    source: stored_results.Source, sweep_id: str | None, model: str | None, verdict: Verdict | None
) -> Iterator[Run]:
    sweeps = (None,) if sweep_id is None else sweep_ids(source, sweep_id)
    for one in sweeps:
        yield from source.runs(stored_results.RunChoice(sweep_id=one, model=model, verdict=verdict))


def points(source: Source = None, sweep_id: str | None = None) -> Frame:
    """Return a row a point: what its repeats say together, with 95 % intervals.

    Args:
        source: where to read.
        sweep_id: whose points; None for those of all sweeps, the newest first.

    Raises:
        PowerlabError: the source cannot be read, or has no such sweep.
    """
    with opened(source) as stored:
        rows: list[tuple[Cell, ...]] = [
            (
                *(sweep.id, sweep.device_name, summary.point.id, *point_cells(summary.point)),
                *(summary.run_count, summary.valid_count, *cells_of(METRICS, summary.metrics)),
                findings_cell(summary.findings),
            )
            for sweep in chosen_sweeps(stored, sweep_id)
            for summary in stored.summaries(sweep.id)
        ]
        return frame_of(POINT_FRAME, rows)


def trace(source: Source, run_id: str) -> Frame:
    """Return a row a sample of all that was recorded with a run, as an export has it; nothing is decimated.

    Args:
        source: where to read.
        run_id: the run's identifier, or the beginning of it.

    Raises:
        PowerlabError: the source cannot be read, has no such run, or does not have its traces.
    """
    from powerlab.protocol.arrow import schema_of

    with opened(source) as stored:
        pieces = stored.traces("parquet", None, whole_run_id(stored, run_id))
        table = needed("pyarrow.parquet").read_table(needed("pyarrow").BufferReader(b"".join(pieces)))
        return Frame(table.from_arrays(table.columns, schema=schema_of(TRACE_COLUMNS)))


def layers(source: Source = None, profile_id: str | None = None) -> Frame:
    """Return a row a layer of one layer profile, or of all, the newest first.

    Raises:
        PowerlabError: the source cannot be read, or has no such profile.
    """
    with opened(source) as stored:
        rows = [row for profile in chosen_profiles(stored, profile_id) for row in _layer_rows(profile)]
        return frame_of(LAYER_FRAME, rows)


def _layer_rows(profile: LayerProfile) -> list[tuple[Cell, ...]]:
    whole = (profile.id, profile.started_at, profile.device_name, profile.model, profile.batch_size, profile.threads)
    return [
        (
            *(*whole, profile.mode, profile.tier),
            *(layer.index, layer.name, layer.operator, layer.kernel, layer.flops, layer.bytes_moved),
            layer.share_percent,
            *cells_of(
                LAYER_FIGURES,
                [one for one in (layer.time, layer.alone, layer.power, layer.energy, layer.above_idle) if one],
            ),
            findings_cell(layer.findings),
        )
        for layer in profile.layers
    ]
