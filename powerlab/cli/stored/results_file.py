"""Keeps every finished run at once, as a line in a file that survives a crash."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from powerlab.atomic_file import write_whole
from powerlab.domain.device import Device
from powerlab.domain.errors import PowerlabError
from powerlab.domain.run import Run
from powerlab.domain.sweep import SweepPlan


class ResultsFile:
    """An NDJSON file: a line with the plan and the device, then a line a run, each on the disk when it is written."""

    def __init__(
        self, directory: Path, sweep_id: str, device: Device, plan: SweepPlan, earlier: Sequence[Run] = ()
    ) -> None:
        """Open ``directory/SWEEP_ID.ndjson``.

        Args:
            directory: where.
            sweep_id: the sweep.
            device: what measures it.
            plan: what is measured.
            earlier: runs of a sweep that goes on; a file that holds them is replaced as a whole or not at all.

        Raises:
            PowerlabError: it cannot be written.
        """
        self.path = directory / f"{sweep_id}.ndjson"
        self._run_count = len(earlier)
        header = {"kind": "sweep", "sweep_id": sweep_id, "device": device, "plan": plan}
        try:
            directory.mkdir(parents=True, exist_ok=True)
            if earlier:
                records = (header, *({"kind": "run", "run": run} for run in earlier))
                write_whole(self.path, b"".join(msgspec.json.encode(record) + b"\n" for record in records))
                self._file = self.path.open("ab", buffering=0)
                return
            # Unbuffered: what a full disk did not take must not be tried again when the file is closed.
            self._file = self.path.open("xb", buffering=0)
            try:
                self._append(header)
            except OSError:
                self.close()
                raise
        except OSError as error:
            raise PowerlabError(
                f"the results cannot be kept in {directory}: {error.strerror}; set POWERLAB_STATE_DIR to a folder that "
                "can be written."
            ) from error

    def add(self, run: Run) -> None:
        """Append a run and wait until it is on the disk.

        Raises:
            PowerlabError: the disk is full or broken; the runs before it are kept.
        """
        try:
            self._append({"kind": "run", "run": run})
        except OSError as error:
            raise PowerlabError(
                f"the results file {self.path} takes no more runs ({error.strerror}), so the sweep ends "
                "and those before are kept; free some space, or set POWERLAB_STATE_DIR to a folder elsewhere."
            ) from error
        self._run_count += 1

    def _append(self, record: dict[str, Any]) -> None:
        rest = memoryview(msgspec.json.encode(record) + b"\n")
        size = self._file.tell()
        try:
            while rest:
                rest = rest[self._file.write(rest) :]
            os.fsync(self._file.fileno())
        except OSError:
            self._file.truncate(size)
            self._file.seek(size)
            raise

    def close(self) -> None:
        """Close the file; one without any run is taken away again."""
        self._file.close()
        if not self._run_count:
            self.path.unlink(missing_ok=True)
