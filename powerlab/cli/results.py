"""Keeps every finished run at once, as a line in a file that survives a crash."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec

from powerlab.domain.device import Device
from powerlab.domain.errors import PowerlabError
from powerlab.domain.run import Run
from powerlab.domain.sweep import SweepPlan


class ResultsFile:
    """An NDJSON file: a line with the plan and the device, then a line a run, each on the disk when it is written."""

    def __init__(self, directory: Path, sweep_id: str, device: Device, plan: SweepPlan) -> None:
        """Open ``directory/SWEEP_ID.ndjson``.

        Raises:
            PowerlabError: it cannot be written.
        """
        self.path = directory / f"{sweep_id}.ndjson"
        self._holds_runs = False
        try:
            directory.mkdir(parents=True, exist_ok=True)
            self._file = self.path.open("xb")
        except OSError as error:
            raise PowerlabError(
                f"the results cannot be kept in {directory}: {error.strerror}; set POWERLAB_STATE_DIR to a folder that "
                "can be written."
            ) from error
        self._append({"kind": "sweep", "sweep_id": sweep_id, "device": device, "plan": plan})

    def add(self, run: Run) -> None:
        """Append a run and wait until it is on the disk."""
        self._append({"kind": "run", "run": run})
        self._holds_runs = True

    def _append(self, record: dict[str, Any]) -> None:
        self._file.write(msgspec.json.encode(record) + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file; one without any run is taken away again."""
        self._file.close()
        if not self._holds_runs:
            self.path.unlink(missing_ok=True)
