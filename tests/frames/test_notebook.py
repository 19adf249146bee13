"""The tutorial notebook works as written, and is committed with its outputs."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import nbformat
import pytest
from nbclient.exceptions import CellExecutionError

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOK = ROOT / "docs" / "notebooks" / "tutorial.ipynb"
MOST_BYTES = 300_000
PLOTLY = "application/vnd.plotly.v1+json"

_spec = importlib.util.spec_from_file_location("write_notebook", ROOT / "scripts" / "write_notebook.py")
write_notebook = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(write_notebook)


def code_cells(notebook: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def test_it_is_committed_with_the_outputs_of_one_execution() -> None:
    assert NOTEBOOK.stat().st_size < MOST_BYTES
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    cells = code_cells(notebook)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1)), "run 'make notebook'"
    outputs = [output for cell in cells for output in cell.outputs]
    assert {output.output_type for output in outputs} == {"stream", "execute_result", "display_data"}
    assert all(output.get("name", "stdout") == "stdout" for output in outputs), "a cell warned"
    assert sum(PLOTLY in output.get("data", {}) for output in outputs) == 2


@pytest.mark.campaign(minutes=0.5)
def test_every_cell_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POWERLAB_STATE_DIR", str(tmp_path / "state"))
    made = code_cells(write_notebook.executed(NOTEBOOK, tmp_path))
    kept = code_cells(nbformat.read(NOTEBOOK, as_version=4))
    for mine, theirs in zip(made, kept, strict=True):
        assert [one.output_type for one in mine.outputs] == [one.output_type for one in theirs.outputs], mine.source


def test_a_cell_that_fails_is_noticed(tmp_path: Path) -> None:
    broken = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1 / 0")])
    nbformat.write(broken, tmp_path / "broken.ipynb")
    with pytest.raises(CellExecutionError, match="ZeroDivisionError"):
        write_notebook.executed(tmp_path / "broken.ipynb", tmp_path)
