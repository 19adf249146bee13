"""Execute docs/notebooks/tutorial.ipynb and write its outputs into it, without what differs for no reason."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

_FILE = Path(__file__).resolve().parent.parent / "docs" / "notebooks" / "tutorial.ipynb"
_CELL_S = 300


def executed(path: Path, folder: Path) -> nbformat.NotebookNode:
    """Return a notebook with the outputs of its cells, carried out in ``folder``.

    Figures are Plotly's JSON alone: its library, of several megabytes, is what displays them.

    Raises:
        CellExecutionError: a cell failed.
    """
    notebook: nbformat.NotebookNode = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    environment = {**os.environ, "PLOTLY_RENDERER": "plotly_mimetype"}
    client = NotebookClient(
        notebook,
        timeout=_CELL_S,
        kernel_name="python3",
        record_timing=False,
        resources={"metadata": {"path": str(folder)}},
    )
    client.execute(env=environment)
    notebook.metadata["language_info"] = {"name": "python"}
    return notebook


def main() -> int:
    """Write the file."""
    nbformat.write(executed(_FILE, _FILE.parent), _FILE)  # type: ignore[no-untyped-call]
    return 0


if __name__ == "__main__":
    sys.exit(main())
