"""What pandas and polars make of a frame, and what is said where they are missing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab import frames
from powerlab.domain.errors import PowerlabError
from powerlab.frames.frame import Frame, frame_of
from powerlab.protocol.export import Cell, Column
from powerlab_dashboards.notebook import figure
from tests.frames.conftest import World

COLUMNS = (
    Column("text", "string", "text"),
    Column("count", "int64", "a number", nullable=True),
    Column("power_w", "double", "power", nullable=True, unit="W"),
    Column("claimed", "bool", "yes or no"),
)
ROWS = st.lists(
    st.tuples(
        st.text(st.characters(exclude_categories=["Cs"])),
        st.none() | st.integers(-(2**63), 2**63 - 1),
        st.none() | st.floats(allow_nan=False),
        st.booleans(),
    ),
    max_size=20,
)


@given(ROWS)
def test_every_cell_comes_back(rows: list[tuple[Cell, ...]]) -> None:
    frame = frame_of(COLUMNS, rows)
    names = [column.name for column in COLUMNS]
    assert [tuple(row[name] for name in names) for row in frame.arrow.to_pylist()] == rows
    assert frame.polars().rows() == rows
    table = frame.pandas()
    assert [None if count is pd.NA else count for count in table["count"]] == [row[1] for row in rows]
    assert table["power_w"].isna().tolist() == [row[2] is None for row in rows]
    assert table["text"].tolist() == [row[0] for row in rows]


def test_pandas_has_units_and_types_that_keep_null_apart_from_0() -> None:
    frame = frame_of(COLUMNS, [("", 0, None, True), ("a", None, 0.0, False)])
    table = frame.pandas()
    assert table.attrs == {"units": {"power_w": "W"}}
    assert table[table["claimed"]].attrs == table.attrs
    assert [str(kind) for kind in table.dtypes] == ["string", "Int64", "float64", "bool"]
    assert table["count"].isna().tolist() == [False, True]


def test_polars_has_the_types_and_the_frame_the_units() -> None:
    frame = frame_of(COLUMNS, [("", 0, None, True)])
    assert frame.polars().dtypes == [pl.String, pl.Int64, pl.Float64, pl.Boolean]
    assert frame.units == {"power_w": "W"}


def test_libraries_that_read_arrow_take_a_frame_as_it_is() -> None:
    frame = frame_of(COLUMNS, [("", 0, None, True)])
    assert pa.table(frame).equals(frame.arrow)
    assert pl.DataFrame(frame).equals(frame.polars())
    assert duckdb.sql("SELECT count(*), min(power_w) FROM frame").fetchall() == [(1, None)]


def test_a_frame_without_rows_has_its_columns() -> None:
    frame = frame_of(COLUMNS, [])
    assert len(frame) == 0
    assert list(frame.pandas().columns) == list(frame.polars().columns) == [column.name for column in COLUMNS]
    assert repr(frame) == "Frame(0 rows: text, count, power_w, claimed)"


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_a_missing_library_is_said_with_the_extra_that_has_it(
    world: World, library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = frames.points(world.file)
    monkeypatch.setitem(sys.modules, library, None)
    ask = {"pandas": frame.pandas, "polars": frame.polars, "pyarrow": lambda: frames.runs(world.file)}[library]
    with pytest.raises(PowerlabError, match=rf"{library}; .*pip install 'powerlab\[frames\]'"):
        ask()


def test_without_a_database_toolkit_files_and_servers_are_read_all_the_same(world: World) -> None:
    program = f"""
import sys
sys.modules["sqlalchemy"] = None
from powerlab import frames
from powerlab.domain.errors import PowerlabError
assert not {{"pandas", "polars", "pyarrow", "plotly"}} & sys.modules.keys()
print(len(frames.points({str(world.file)!r})), len(frames.points({world.client.server!r}, {world.sweep.id!r})))
try:
    frames.points({str(world.store.address)!r})
except PowerlabError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    counts, sentence = done.stdout.splitlines()
    assert counts == "4 4"
    assert "pip install 'powerlab[server]'" in sentence


def test_a_figure_without_plotly_says_so(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "plotly", None)
    monkeypatch.delitem(sys.modules, "plotly.graph_objects", raising=False)
    with pytest.raises(PowerlabError, match=r"plotly; .*pip install 'powerlab\[frames\]'"):
        figure("pareto-front", world.file)


def test_the_local_database_is_read_where_no_source_is_named(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POWERLAB_STATE_DIR", str(tmp_path))
    with pytest.raises(
        PowerlabError, match=r"this machine has measured nothing yet \(there is no database .*powerlab.db\)"
    ):
        frames.runs()
    (tmp_path / "powerlab.db").symlink_to(world.store.address)
    mine: Frame = frames.points()
    assert mine.arrow.equals(frames.points(world.store).arrow)
    monkeypatch.setenv("POWERLAB_SERVER", world.client.server)
    (tmp_path / "powerlab.db").unlink()
    assert len(frames.points(None, world.sweep.id[:13])) == 4
