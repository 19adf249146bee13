"""Frames say what the store and the API say, to the last bit, whatever they are read from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from powerlab import frames
from powerlab.domain.errors import PowerlabError
from powerlab.domain.layers import LAYER_METRICS
from powerlab.domain.quantity import METRICS, POWER_FIGURES, Metric, Provenance
from powerlab.domain.run import Verdict
from powerlab.frames.answers import BEST_FRAME, COMPARISON_FRAME
from powerlab.frames.tables import LAYER_FRAME, POINT_FRAME, RUN_FRAME
from powerlab.protocol.arrow import schema_of
from powerlab.protocol.export import FIGURE_COLUMNS
from powerlab.protocol.trace_export import TRACE_COLUMNS
from powerlab.store.reads import queries
from powerlab.store.reads.sweep_results import summaries_of_sweep
from tests.frames.conftest import PLAN, World

EVERY = ["store", "database", "client", "address", "file"]


def figures_in(row: dict[str, Any], kinds: Any = METRICS) -> list[Metric]:
    """Read the figures back from a row; all four cells of one are there, or value and provenance, or none."""
    found = []
    for name in kinds:
        value, low, high, provenance = (row[column] for column in frames.figure_columns(name))
        assert (value is None) == (provenance is None), name
        assert (low is None) == (high is None), name
        if value is not None:
            found.append(Metric(name=name, value=value, low=low, high=high, provenance=Provenance(provenance)))
    return found


def by_name(metrics: tuple[Metric, ...]) -> list[Metric]:
    return sorted(metrics, key=lambda metric: list(METRICS).index(metric.name))


@pytest.mark.parametrize("kind", EVERY)
def test_a_run_is_a_row_with_exactly_its_figures(world: World, kind: str) -> None:
    rows = frames.runs(world.source(kind), sweep_id=world.sweep.id).arrow.to_pylist()
    runs = {run.id: run for run in world.sweep.runs}
    assert {row["run_id"] for row in rows} == runs.keys()
    for row in rows:
        run = runs[row["run_id"]]
        assert figures_in(row) == by_name(run.metrics)
        assert (row["threads"], row["mode"], row["repeat"]) == (run.point.threads, run.point.mode, run.repeat)
        assert (row["verdict"], row["sweep_id"]) == (run.verdict.value, world.sweep.id)
        assert row["power_scope"] == ("" if run.total is None else run.total.scope)
        assert row["findings"] == "; ".join(f"{one.rule}: {one.detail}" for one in run.findings)


@pytest.mark.parametrize("kind", EVERY)
def test_a_point_is_a_row_with_exactly_its_summary(world: World, kind: str) -> None:
    with world.store.session() as session:
        summaries = summaries_of_sweep(session, world.sweep.id)
    rows = frames.points(world.source(kind), world.sweep.id).arrow.to_pylist()
    assert [row["point_id"] for row in rows] == [point.id for point in PLAN.points()]
    for row, summary in zip(rows, summaries, strict=True):
        assert figures_in(row) == by_name(summary.metrics)
        assert (row["run_count"], row["valid_count"]) == (summary.run_count, summary.valid_count)
        assert (row["sweep_id"], row["device"]) == (world.sweep.id, "xavier-sim")
        assert row["power_w_low"] < row["power_w"] < row["power_w_high"]
    assert "throttled: 1.2 GHz" in rows[0]["findings"]


@pytest.mark.parametrize("kind", ["store", "client"])
def test_missing_power_is_null_and_never_0(world: World, kind: str) -> None:
    for frame in (
        frames.runs(world.source(kind), sweep_id=world.without_power.id),
        frames.points(world.source(kind), world.without_power.id),
    ):
        assert len(frame) > 0
        for name in POWER_FIGURES:
            for column in frames.figure_columns(name):
                assert frame.arrow[column].null_count == len(frame), column
                assert frame.pandas()[column].isna().all(), column
                assert frame.polars()[column].is_null().all(), column
        assert frame.arrow["throughput_img_per_s"].null_count == 0
        assert set(frame.arrow["throughput_img_per_s_provenance"].to_pylist()) == {"measured"}


def test_all_sweeps_of_a_source_come_without_mixing(world: World) -> None:
    rows = frames.points(world.client).arrow.to_pylist()
    assert {(row["device"], row["throughput_img_per_s_provenance"]) for row in rows} == {
        ("xavier-sim", "simulated"), ("no-sensors", "measured"),
    }  # fmt: skip
    assert {row["sweep_id"] for row in rows} == {world.sweep.id, world.without_power.id}


@pytest.mark.parametrize("kind", EVERY)
def test_runs_are_filtered(world: World, kind: str) -> None:
    source = world.source(kind)
    (flagged,) = frames.runs(source, verdict=Verdict.FLAGGED).arrow.to_pylist()
    assert flagged["findings"] == "throttled: 1.2 GHz of 2.2 GHz"
    (failed,) = frames.runs(source, verdict=Verdict.FAILED, sweep_id=world.sweep.id).arrow.to_pylist()
    assert figures_in(failed) == []
    assert len(frames.runs(source, model="alexnet")) == 0


@pytest.mark.parametrize("kind", ["store", "client", "file"])
def test_figures_have_the_rows_and_the_schema_of_an_export(world: World, kind: str) -> None:
    exported = b"".join(
        world.client.transport.stream(f"/exports/runs?format=parquet&sweep_id={world.sweep.id}", 0, 4096)[1]
    )
    wanted = parquet.read_table(pa.BufferReader(exported))
    frame = frames.figures(world.source(kind), sweep_id=world.sweep.id)
    assert frame.arrow.schema.equals(schema_of(FIGURE_COLUMNS), check_metadata=True)
    order = [("run_id", "ascending"), ("metric", "ascending")]
    assert frame.arrow.sort_by(order).equals(wanted.sort_by(order))


@pytest.mark.parametrize("kind", ["store", "client"])
def test_a_trace_holds_every_sample(world: World, kind: str) -> None:
    run = world.sweep.runs[0]
    frame = frames.trace(world.source(kind), run.id[:13])
    assert frame.arrow.schema.equals(schema_of(TRACE_COLUMNS), check_metadata=True)
    assert frame.units == {"time_ns": "ns"}
    with world.store.session() as session:
        recorded = queries.recorded(session, run.id)
    assert len(frame) == sum(len(trace.time_ns) for trace in recorded) > 1000
    table = frame.pandas()
    for trace in recorded:
        mine = table[(table["source"] == trace.rail.source) & (table["rail"] == trace.rail.name)]
        assert mine["time_ns"].tolist() == trace.time_ns.tolist()
        assert mine["value"].tolist() == trace.value.tolist()
        assert set(zip(mine["unit"], mine["provenance"], strict=True)) == {("W", "simulated")}


@pytest.mark.parametrize("kind", ["store", "client"])
def test_a_layer_is_a_row(world: World, kind: str) -> None:
    (profile,) = [one for one in world.client.layer_profiles() if one.idle_power is not None]
    rows = frames.layers(world.source(kind), profile.id).arrow.to_pylist()
    names = [name for name in LAYER_METRICS if name in rows[0]]
    assert len(rows) == len(profile.layers)
    for row, layer in zip(rows, profile.layers, strict=True):
        figures = {figure.name: figure for figure in figures_in(row, names)}
        wanted = [layer.time, layer.alone, layer.power, layer.energy, layer.above_idle]
        assert figures == {figure.name: figure for figure in wanted if figure is not None}
        assert (row["layer"], row["name"], row["flops"]) == (layer.index, layer.name, layer.flops)
    without = [row for row in frames.layers(world.source(kind)).arrow.to_pylist() if row["profile_id"] != profile.id]
    assert without
    assert {row["layer_energy_j"] for row in without} == {None}


@pytest.mark.parametrize("make", [frames.runs, frames.points])
def test_units_are_in_the_metadata_of_every_figure(world: World, make: Any) -> None:
    frame = make(world.file)
    for name, kind in METRICS.items():
        value, low, high, provenance = frames.figure_columns(name)
        assert {frame.units[column] for column in (value, low, high)} == {kind.unit}
        assert provenance not in frame.units
        assert frame.arrow.schema.field(value).metadata[b"description"].decode() == kind.title
    assert all(field.metadata[b"description"] for field in frame.arrow.schema)


def test_what_a_source_has_not_got_is_said_in_a_sentence(world: World, tmp_path: Any) -> None:
    other = tmp_path / "other.txt"
    other.write_text("{}", encoding="utf-8")
    wrong = [
        (lambda: frames.runs(tmp_path / "none.db"), "there is no database .*none.db"),
        (lambda: frames.runs(other), "holds no sweep"),
        (lambda: frames.trace(world.file, world.sweep.runs[0].id), "hold no traces"),
        (lambda: frames.layers(world.file), "hold no layer profiles"),
        (lambda: frames.points(world.file, "q"), "there is no sweep 'q' in"),
        (lambda: frames.layers(world.client, "x"), "there is no layer profile 'x'"),
        (lambda: frames.comparisons(world.client, metric="colour"), "unknown metric 'colour'"),
    ]
    for ask, sentence in wrong:
        with pytest.raises(PowerlabError, match=sentence) as caught:
            ask()
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", ["store", "client"])
def test_identifiers_that_nothing_has_are_said_in_a_sentence(world: World, kind: str) -> None:
    source = world.source(kind)
    for ask, sentence in (
        (lambda: frames.points(source, "q"), "there is no sweep 'q'"),
        (lambda: frames.runs(source, sweep_id="q"), "there is no sweep 'q'"),
        (lambda: frames.best(source, "q"), "there is no sweep 'q'"),
        (lambda: frames.trace(source, "q"), "there is no run 'q'"),
        (lambda: frames.points(source, world.sweep.device_id), "is no sweep, but the device"),
    ):
        with pytest.raises(PowerlabError, match=sentence):
            ask()


def test_the_page_names_every_column_of_every_frame() -> None:
    page = (Path(__file__).parents[2] / "docs" / "exports.md").read_text(encoding="utf-8")
    figures = {column for name in METRICS for column in frames.figure_columns(name)}
    layers = {column for name in LAYER_METRICS for column in frames.figure_columns(name)[1:]}
    columns = {
        column.name for frame in (RUN_FRAME, POINT_FRAME, LAYER_FRAME, BEST_FRAME, COMPARISON_FRAME) for column in frame
    }
    assert [name for name in columns - figures - layers if f"`{name}`" not in page] == []
